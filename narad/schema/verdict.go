package schema

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	maxNesting = 128 // of a payload
	maxText    = 200 // bytes of one piece of a refusal
)

// check tells whether a payload is what the schema wants, on the turn of whoever calls. The error is a *wire.Problem, Invalid.
func (f *form) check(version int, payload []byte) error {
	if !utf8.Valid(payload) {
		return refuse("the payload is not JSON, which the topic's schema wants: it is not UTF-8")
	}
	v, err := read(payload)
	if err != nil {
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			return refuse("the payload is not JSON, which the topic's schema wants: it breaks off being so at byte %d", bad.Offset)
		}
		return refuse("the payload is not JSON, which the topic's schema wants")
	}
	if err = plain(v, 0); err != nil {
		return err
	}
	f.fill(baseBudget + byteBudget*int64(len(payload)))
	fits := f.pay(arrivals(f.own)) && f.verdict.Validate(v) != nil
	switch {
	case f.spent:
		return refuse("the payload takes more work to check than its size allows (schema version %d); simplify the schema", version)
	case fits:
		return nil
	}
	return f.place(version, v)
}

// plain holds a payload's bounds that the budget cannot: numbers that would be computed for ever, levels that each cost stack.
func plain(v any, depth int) error {
	if depth > maxNesting {
		return refuse("the payload is nested too deep for a schema: at most %d levels", maxNesting)
	}
	switch v := v.(type) {
	case json.Number:
		if !sane(v) {
			return refuse("the payload has a number that is too large or too long for a schema: at most %d characters and an exponent of %d", maxNumber, maxNumber)
		}
	case []any:
		for _, item := range v {
			if err := plain(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, member := range v {
			if err := plain(member, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// place looks again for where a payload fails. Several failures have one order, so that one payload gets one text.
func (f *form) place(version int, v any) error {
	f.fill(placeBudget)
	err, ok := errors.AsType[*jsonschema.ValidationError](f.own.Validate(v))
	if !ok {
		return refuse("the payload does not match the schema (version %d)", version)
	}
	path, keyword, found := firstOf(err)
	if !found {
		return refuse("the payload does not match the schema (version %d)", version)
	}
	return refuse("the payload does not match the schema (version %d): at %q: %s", version, cut(pointer(f.shown(path, v))), cut(keyword))
}

// shown replaces what the payload alone names by "*". A member whose name is a number is told from an item by the payload.
func (f *form) shown(path []string, v any) []string {
	out := make([]string, 0, len(path))
	for _, step := range path {
		switch in := v.(type) {
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return out
			}
			v = in[i]
			out = append(out, step)
		case map[string]any:
			v = in[step]
			if !f.names[step] {
				step = "*"
			}
			out = append(out, step)
		default:
			return out
		}
	}
	return out
}

// firstOf is the first failure at the end of its causes, by place and then by keyword.
func firstOf(err *jsonschema.ValidationError) (path []string, keyword string, found bool) {
	if len(err.Causes) == 0 {
		keyword, found = wants(err.ErrorKind)
		return err.InstanceLocation, keyword, found
	}
	for _, cause := range err.Causes {
		p, k, ok := firstOf(cause)
		if !ok {
			continue
		}
		if order := slices.Compare(p, path); !found || order < 0 || order == 0 && k < keyword {
			path, keyword, found = p, k, true
		}
	}
	return path, keyword, found
}

// wants says what a keyword wants in words of the schema alone; false for what is no failure of the payload.
func wants(k jsonschema.ErrorKind) (string, bool) {
	switch k := k.(type) {
	case nil:
		return "", false
	case *kind.Format:
		if errors.Is(k.Err, errSpent) {
			return "", false
		}
		return "format wants " + k.Want, true
	case *kind.Type:
		return "type wants " + strings.Join(k.Want, " or "), true
	case *kind.Required:
		return "required wants " + strconv.Quote(slices.Min(k.Missing)), true
	case *kind.FalseSchema:
		return "nothing is allowed here", true
	}
	keyword := strings.Join(k.KeywordPath(), "/")
	if keyword == "" {
		keyword = "not what the schema wants"
	}
	return keyword, true
}

// pointer is a path as a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// place of the library's URL of a part.
func place(url string) string {
	_, at, _ := strings.Cut(url, "#")
	return at
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}
