package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"narad.example/narad/wire"
)

// Bounds of a schema (package comment).
const (
	MaxBytes  = 64 << 10
	maxDepth  = 64
	maxValues = 10_000
	maxForms  = 2000 // objects, true and false: each may be a schema, and compiling takes time by their square
	maxPaths  = 2 << 20
	maxNumber = 400 // characters of a number, and its exponent; of a payload's too
)

// Document is a schema that may be stored.
type Document struct {
	Raw json.RawMessage // without white space
	Sum string          // of the JSON value, 64 hex
}

// Parse checks a schema of a request: that it is an object or `true`, within bounds, and a schema of its draft that compiles without
// anything being loaded. The error is a *wire.Problem, Invalid; it names the rule and the place in the schema (DEC-20).
func Parse(raw []byte) (Document, error) {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil || !utf8.Valid(raw) {
		return Document{}, refuse("the schema is not JSON")
	}
	if compact.Len() > MaxBytes {
		return Document{}, refuse("the schema is too large: at most %d bytes", MaxBytes)
	}
	v, err := read(raw)
	if err != nil {
		return Document{}, refuse("the schema is not JSON")
	}
	if _, object := v.(map[string]any); !object && v != true {
		return Document{}, refuse("a schema is an object or true")
	}
	if err = (&walk{}).value(v, 0, 0); err != nil {
		return Document{}, err
	}
	if err = valid(v); err != nil {
		return Document{}, err
	}
	if _, err = compile(v); err != nil {
		return Document{}, err
	}
	return Document{Raw: compact.Bytes(), Sum: digest(v)}, nil
}

func refuse(format string, args ...any) error { return wire.Refuse(wire.Invalid, format, args...) }

var errNotOne = errors.New("schema: more than one JSON value")

// read decodes one JSON value; numbers stay as they are written.
func read(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotOne
	}
	return v, nil
}

// walk holds a schema's bounds. A path costs its length for each value under it, since a compiled schema keeps it there.
type walk struct{ values, forms, paths int }

func (w *walk) value(v any, depth, path int) error {
	w.values++
	w.paths += path
	switch v.(type) {
	case map[string]any, bool:
		w.forms++
	}
	switch {
	case depth > maxDepth:
		return refuse("the schema is nested too deep: at most %d levels", maxDepth)
	case w.values > maxValues:
		return refuse("the schema has too many values: at most %d", maxValues)
	case w.forms > maxForms:
		return refuse("the schema has too many parts: at most %d objects, true and false", maxForms)
	case w.paths > maxPaths:
		return refuse("the schema's member names are too long for its depth")
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if err := w.value(member, depth+1, path+1+len(name)); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := w.value(item, depth+1, path+4); err != nil {
				return err
			}
		}
	case json.Number:
		if !sane(v) {
			return refuse("the schema has a number that is too large or too long")
		}
	}
	return nil
}

// sane tells whether a number may be computed with: 1e999999999 is ten characters, and a gigabyte as an integer.
func sane(n json.Number) bool {
	if len(n) > maxNumber {
		return false
	}
	_, exponent, has := strings.Cut(strings.ToLower(string(n)), "e")
	if !has {
		return true
	}
	e, err := strconv.Atoi(exponent)
	return err == nil && -maxNumber <= e && e <= maxNumber
}
