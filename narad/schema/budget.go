package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds the instructions of all patterns of a schema: compiling them takes time by it.
const maxSteps = 20_000

// What a payload may cost; a step of the library takes about a third of a microsecond.
const (
	baseBudget  = 100_000
	byteBudget  = 8
	placeBudget = 100_000 // for the second look, which keeps every error that it finds
)

var (
	errSpent       = errors.New("schema: the budget is spent")
	errPatterns    = errors.New("schema: too many instructions in patterns")
	errLongPattern = errors.New("schema: the pattern is too long")
)

// budget is what is left for one payload. It belongs to whoever has the topic's turn.
type budget struct {
	left  int64
	spent bool

	patterns map[string]*paid // compiled
	steps    int64            // of all of them
}

func (b *budget) fill(n int64) { b.left, b.spent = n, false }

// pay takes n from the budget, or says that it is spent. Once spent nothing is paid any more, so the library comes to its end soon: what
// it has begun was paid before.
func (b *budget) pay(n int64) bool {
	if b.spent || n > b.left {
		b.spent = true
		return false
	}
	b.left -= n
	return true
}

// paid is a pattern whose every use is paid for: RE2 takes time by the product of text and expression.
type paid struct {
	*regexp.Regexp
	steps int64 // of its program
	b     *budget
}

// pattern is the library's engine for patterns, each of which it compiles once. It refuses those that are too large together.
func (b *budget) pattern(s string) (jsonschema.Regexp, error) {
	if p, ok := b.patterns[s]; ok {
		return p, nil
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err //nolint:wrapcheck // the library wraps it
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err //nolint:wrapcheck // the library wraps it
	}
	steps := int64(len(prog.Inst))
	if b.steps += steps; b.steps > maxSteps {
		return nil, errPatterns
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err //nolint:wrapcheck // the library wraps it
	}
	p := &paid{Regexp: re, steps: steps, b: b}
	if b.patterns == nil {
		b.patterns = map[string]*paid{}
	}
	b.patterns[s] = p
	return p, nil
}

// MatchString does not match once the budget is spent.
func (p *paid) MatchString(s string) bool {
	return p.b.pay(1+int64(len(s)+1)*p.steps/8) && p.Regexp.MatchString(s)
}
