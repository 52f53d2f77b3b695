package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Sum is the digest of a schema's JSON value, 64 hex; false when it is not JSON or beyond what a schema may have. Two schemas with one
// sum are the same, whatever their white space, order of members or spelling of numbers.
func Sum(raw []byte) (string, bool) {
	v, err := read(raw)
	if err != nil || (&walk{}).value(v, 0, 0) != nil {
		return "", false
	}
	return digest(v), true
}

// digest of a value within bounds.
func digest(v any) string {
	h := sha256.New()
	feed(h, v)
	return hex.EncodeToString(h.Sum(nil))
}

// feed writes a value so that no two values write the same: a letter for the kind, then a length or a count before what it counts.
func feed(h hash.Hash, v any) {
	put := func(kind string, s string) {
		_, _ = h.Write([]byte(kind + strconv.Itoa(len(s)) + ":" + s)) // a hash never fails
	}
	switch v := v.(type) {
	case nil:
		put("z", "")
	case bool:
		put("b", strconv.FormatBool(v))
	case json.Number:
		put("n", plainNumber(string(v)))
	case string:
		put("s", v)
	case []any:
		put("a", strconv.Itoa(len(v)))
		for _, item := range v {
			feed(h, item)
		}
	case map[string]any:
		put("o", strconv.Itoa(len(v)))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			put("s", name)
			feed(h, v[name])
		}
	}
}

// plainNumber writes a sane number as its digits, without zeros at either end, and a power of ten: 1, 1.0 and 10e-1 are 1e0.
func plainNumber(n string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(n), "e")
	e, _ := strconv.Atoi(exponent) // none is 0
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	e -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	return sign + short + "e" + strconv.Itoa(e+len(digits)-len(short))
}
