package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Names of the two documents that are compiled. Nothing is read from them: a name has to be absolute.
const (
	ownURL = "narad://topic/schema"
	notURL = "narad://topic/not"
)

// form is a compiled schema with the budget of the one payload that is checked by it at a time.
type form struct {
	verdict *jsonschema.Schema // accepts what the schema does not, which makes the library keep verdicts and no errors
	own     *jsonschema.Schema
	names   map[string]bool // of all `properties`
	size    int             // compiled parts
	*budget
}

var errLoad = errors.New("schema: nothing is loaded")

// sealed is the loader of a compiler that loads nothing.
type sealed struct{}

func (sealed) Load(string) (any, error) { return nil, errLoad }

// newCompiler knows the schema and the drafts, and nothing else.
func newCompiler(v any, b *budget) (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(b.pattern)
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(sealed{})
	if err := c.AddResource(ownURL, v); err != nil {
		return nil, fmt.Errorf("name the schema: %w", err)
	}
	return c, nil
}

// valid checks a schema against its draft as a whole, which compile does for the keywords that check something alone.
func valid(v any) error {
	return guarded(func() error {
		c, err := newCompiler(v, &budget{})
		if err == nil {
			_, err = c.Compile(ownURL)
		}
		return err
	})
}

// compile makes the form of a schema within bounds. Its error is a *wire.Problem, Invalid.
func compile(v any) (*form, error) {
	f := &form{names: map[string]bool{}, budget: &budget{}}
	parts := map[*jsonschema.Schema]map[string]any{}
	err := guarded(func() error {
		c, err := newCompiler(v, f.budget)
		if err != nil {
			return err
		}
		c.AssertVocabs()
		c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "narad:parts", Compile: func(ctx *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
			parts[ctx.Enqueue(nil)] = obj
			if p, ok := obj["properties"].(map[string]any); ok {
				for name := range p {
					f.names[name] = true
				}
			}
			return nil, nil //nolint:nilnil // the library's way of saying that there is no extension
		}})
		if err = c.AddResource(notURL, map[string]any{"not": map[string]any{"$ref": ownURL}}); err != nil {
			return err
		}
		if f.own, err = c.Compile(ownURL); err == nil {
			f.verdict, err = c.Compile(notURL)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	f.size = len(parts) + 1
	return f, f.price(parts)
}

// guarded turns an error of the library into a refusal, and its panic too: a schema of a stranger must not end the process.
func guarded(do func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = refuse("the schema does not compile")
		}
	}()
	if err = do(); err != nil {
		return explain(err)
	}
	return nil
}

func explain(err error) error {
	if errors.Is(err, errPatterns) {
		return refuse("the schema's patterns are too large together: at most %d instructions of RE2", maxSteps)
	}
	if _, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return refuse("the schema refers to another document; a $ref or $schema may name a place in the schema itself or one of the drafts")
	}
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if at, found := errors.AsType[*jsonschema.ValidationError](bad.Err); found {
			if patternsOf(at) {
				return explain(errPatterns)
			}
			path, keyword, _ := firstOf(at)
			return refuse("the schema is not one of its draft: at %q: %s", cut(pointer(path)), cut(keyword))
		}
		return refuse("the schema is not one of its draft")
	}
	if bad, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		if errors.Is(bad.Err, errPatterns) {
			return explain(errPatterns)
		}
		return refuse("the schema has a pattern that is no RE2 expression: at %q", cut(place(bad.URL)))
	}
	if _, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		return refuse("the schema refers to a place that it does not have")
	}
	if _, ok := errors.AsType[*jsonschema.AnchorNotFoundError](err); ok {
		return refuse("the schema refers to an anchor that it does not have")
	}
	return refuse("the schema does not compile")
}

// patternsOf tells whether a draft's check of a pattern met the bound of all.
func patternsOf(err *jsonschema.ValidationError) bool {
	if f, ok := err.ErrorKind.(*kind.Format); ok && errors.Is(f.Err, errPatterns) {
		return true
	}
	return slices.ContainsFunc(err.Causes, patternsOf)
}

// decoded is a stored schema's value.
func decoded(raw json.RawMessage) (any, error) {
	v, err := read(raw)
	if err != nil {
		return nil, fmt.Errorf("a stored schema does not decode: %w", err)
	}
	return v, nil
}
