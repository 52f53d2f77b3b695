package access

import (
	"strings"

	"narad.example/narad/wire"
)

const (
	maxUsername = 64
	maxPattern  = 255
)

// plainName tells whether s is 1 to limit of A-Za-z0-9._- and neither "." nor "..".
func plainName(s string, limit int) bool {
	if len(s) < 1 || len(s) > limit || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !plain {
			return false
		}
	}
	return true
}

// checkGrants refuses what is no grant (api.md, Users).
func checkGrants(grants []wire.Grant) *wire.Problem {
	for _, g := range grants {
		switch g.Action {
		case wire.ActionAdmin:
			if len(g.Patterns) > 0 {
				return wire.Refuse(wire.Invalid, "an admin grant takes no patterns")
			}
			continue
		case wire.ActionProduce, wire.ActionConsume, wire.ActionCreate:
		default:
			return wire.Refuse(wire.Invalid, "a grant's action must be produce, consume, create or admin")
		}
		if len(g.Patterns) == 0 {
			return wire.Refuse(wire.Invalid, "a %s grant needs patterns", g.Action)
		}
		for _, p := range g.Patterns {
			prefix, star := strings.CutSuffix(p, "*")
			plain := star && (prefix == "" || prefix == "." || prefix == "..") || plainName(prefix, maxPattern)
			if len(p) > maxPattern || !plain {
				return wire.Refuse(wire.Invalid, "a pattern is a topic name, or a prefix ending in one '*', of up to 255 characters")
			}
		}
	}
	return nil
}

func givesAdmin(grants []wire.Grant) bool {
	for _, g := range grants {
		if g.Action == wire.ActionAdmin {
			return true
		}
	}
	return false
}
