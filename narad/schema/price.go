package schema

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// price is what one part of a schema costs where it meets a value. A part that is reached is paid for by the one that reaches it: what it costs
// before it is its own turn (kind, const, enum) stands in the price of that one.
type price struct {
	own     int64 // whatever the value is, the parts for the same value included
	member  int64 // for each item or member
	named   int64 // of an object: the parts of `properties`
	tracks  int64 // for each item or member, where something counts what was evaluated
	unique  bool
	measure bool // length of a string
	formed  bool // format of a string
}

// arrival is what a part costs before it is its turn: a number of an enum is compared as a fraction.
func arrival(p *jsonschema.Schema) int64 {
	n := int64(1)
	if p.Const != nil {
		n += 4 * count(*p.Const)
	}
	if p.Enum != nil {
		for _, v := range p.Enum.Values {
			n += 4 * count(v)
		}
	}
	return n
}

func arrivals(parts ...*jsonschema.Schema) (n int64) {
	for _, p := range parts {
		if p != nil {
			n += arrival(p)
		}
	}
	return n
}

// count is the number of values in a value.
func count(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += count(item)
		}
	case map[string]any:
		for _, member := range v {
			n += count(member)
		}
	}
	return n
}

// priceOf is the price of one part; obj is what it was compiled from.
func priceOf(p *jsonschema.Schema, obj map[string]any, tracks bool) price {
	same := sameValue(p)
	c := price{
		own: 1 + arrivals(same...), unique: p.UniqueItems, measure: p.MinLength != nil || p.MaxLength != nil, formed: p.Format != nil,
	}
	for keyword, v := range obj {
		switch keyword {
		case "properties", "$defs", "definitions", "enum", "const", "default", "examples": // priced above, or costing nothing
		default:
			c.own++
			switch v := v.(type) {
			case []any:
				c.own += int64(len(v))
			case map[string]any:
				c.own += int64(len(v))
			}
		}
	}
	c.member = 1 + arrivals(p.PropertyNames, p.UnevaluatedProperties, p.Contains, p.Items2020, p.UnevaluatedItems) +
		arrivals(p.PrefixItems...) + arrivals(schemas(p.Items)...) + arrivals(schemas(p.AdditionalItems)...) + arrivals(schemas(p.AdditionalProperties)...)
	for _, child := range p.PatternProperties {
		c.member += arrival(child)
	}
	for _, child := range p.Properties {
		c.named += arrival(child)
	}
	if tracks {
		c.tracks = 1 + int64(len(same))
	}
	return c
}

// schemas are those in a member that the library declares as any.
func schemas(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// sameValue are the parts that a part has checked for its own value.
func sameValue(p *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{p.Ref, p.RecursiveRef, p.Not, p.If, p.Then, p.Else}
	if p.DynamicRef != nil {
		out = append(out, p.DynamicRef.Ref)
	}
	out = append(append(append(out, p.AllOf...), p.AnyOf...), p.OneOf...)
	for _, d := range p.DependentSchemas {
		out = append(out, d)
	}
	for _, d := range p.Dependencies {
		out = append(out, schemas(d)...)
	}
	kept := out[:0]
	for _, s := range out {
		if s != nil {
			kept = append(kept, s)
		}
	}
	return kept
}

// price gives every part its price, to be paid where the library first calls out of a part whose kind, const and enum fit: at its format. It
// refuses parts that follow each other on one value for too long, or for ever.
func (f *form) price(parts map[*jsonschema.Schema]map[string]any) error {
	tracks := false
	for p := range parts {
		tracks = tracks || p.UnevaluatedItems != nil || p.UnevaluatedProperties != nil
	}
	heights := map[*jsonschema.Schema]int{}
	for p, obj := range parts {
		if err := climb(heights, p); err != nil {
			return err
		}
		c, was, name := priceOf(p, obj, tracks), p.Format, "none"
		if was != nil {
			name = was.Name
		}
		p.Format = &jsonschema.Format{Name: name, Validate: func(v any) error {
			if !f.pay(c.of(v)) {
				return errSpent
			}
			if was == nil {
				return nil
			}
			if s, ok := v.(string); ok && was.Name == "regex" && len(s) > maxNumber {
				return errLongPattern
			}
			return was.Validate(v)
		}}
	}
	return nil
}

const climbing = -1

// climb finds how many parts follow each other on one value from a part on.
func climb(heights map[*jsonschema.Schema]int, p *jsonschema.Schema) error {
	switch h := heights[p]; {
	case h == climbing:
		return refuse("the schema refers to itself in a ring that takes no step into the payload")
	case h > 0:
		return nil
	}
	heights[p] = climbing
	highest := 0
	for _, next := range sameValue(p) {
		if err := climb(heights, next); err != nil {
			return err
		}
		highest = max(highest, heights[next])
	}
	if highest > maxDepth+1 { // the two parts of the verdict come on top
		return refuse("the schema has too many references and combinations that follow each other on one value: at most %d", maxDepth)
	}
	heights[p] = highest + 1
	return nil
}

// of is the price for a value.
func (c *price) of(v any) int64 {
	n := c.own
	switch v := v.(type) {
	case []any:
		n += int64(len(v)) * (c.member + c.tracks)
		if c.unique {
			n += count(v) * int64(min(len(v), 20))
		}
	case map[string]any:
		n += int64(len(v))*(c.member+c.tracks) + c.named
	case string:
		if c.measure {
			n += int64(len(v)) / 64
		}
		if c.formed {
			n += int64(len(v)) / 16
		}
	}
	return n
}
