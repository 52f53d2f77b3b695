package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"narad.example/harness/ledger"
)

// Shapes of a payload.
const (
	ShapeJSON   = "json"
	ShapeText   = "text"
	ShapeBinary = "binary"
)

// Record is one record of the load.
type Record struct {
	ID      string
	Key     []byte // nil is none
	Payload []byte
	Shape   string
}

// roomy is the payload size from which every shape has room for an ID.
const roomy = 48

// Make is record number i of a load, the same for the same seed whoever asks and whenever. number sets the load's IDs apart from
// those of other loads.
func (l *Load) Make(seed uint64, number, i int) Record {
	a, b := derive(seed, "load "+l.Name)
	rng := rand.New(rand.NewPCG(a, b^(uint64(i)*0x9e3779b97f4a7c15)))
	r := Record{ID: ledger.NewID(uint64(number)<<40 | uint64(i))}
	size := l.size(rng)
	switch roll := rng.IntN(100); {
	case roll < l.JSON:
		r.Shape, r.Payload = ShapeJSON, jsonPayload(rng, r.ID, size)
	case roll < l.JSON+l.Text:
		r.Shape, r.Payload = ShapeText, textPayload(rng, r.ID, size)
	default:
		r.Shape, r.Payload = ShapeBinary, binaryPayload(rng, r.ID, size)
	}
	r.Key = l.key(rng)
	if ledger.IDOf(nil, r.Payload) != r.ID && !bytes.Contains(r.Payload, []byte(token(r.ID))) {
		r.Key = []byte("tiny " + r.ID)
	}
	return r
}

// token names a record in a payload that is too small for its ID but has room for this: no other payload of the run holds it, so that the
// ledger finds the record by its key and payload (ledger.Load), and keys repeat in small payloads too.
func token(id string) string {
	n, err := strconv.ParseUint(strings.TrimPrefix(id, ledger.Marker), 16, 64)
	if err != nil {
		return id // no ID of NewID
	}
	return strconv.FormatUint(n>>40, 36) + "." + strconv.FormatUint(n&(1<<40-1), 36) + "."
}

// size is spread evenly over the orders of magnitude, so that small ones are not rare beside large ones.
func (l *Load) size(rng *rand.Rand) int {
	if l.MinSize >= l.MaxSize {
		return l.MaxSize
	}
	low, high := math.Log(float64(l.MinSize)), math.Log(float64(l.MaxSize)+1)
	return min(max(int(math.Exp(low+rng.Float64()*(high-low))), l.MinSize), l.MaxSize)
}

// maxKey is the longest key that the API takes.
const maxKey = 64 << 10

var nasty = []func(rng *rand.Rand) []byte{
	func(*rand.Rand) []byte { return nil },
	func(*rand.Rand) []byte { return []byte{0} },
	func(*rand.Rand) []byte { return []byte("a\x00b") },
	func(*rand.Rand) []byte { return []byte{0xff, 0xfe, 'k'} },
	func(*rand.Rand) []byte { return []byte("\xed\xa0\x80") }, // half of a surrogate pair
	func(*rand.Rand) []byte { return []byte("ключ-鍵-🔑-é") },
	func(*rand.Rand) []byte { return []byte(`"\</script>&` + "\u2028\n\t ") },
	func(*rand.Rand) []byte { return []byte(" ") },
	func(*rand.Rand) []byte { return []byte("?key=a&partition=1#%00+") },
	// Keys that are one when they are folded, normalised or trimmed.
	func(*rand.Rand) []byte { return []byte("Key-00001") },
	func(*rand.Rand) []byte { return []byte("KEY-00001") },
	func(*rand.Rand) []byte { return []byte("STRASSE") },
	func(*rand.Rand) []byte { return []byte("straße") },
	func(*rand.Rand) []byte { return []byte("\u00c9") },
	func(*rand.Rand) []byte { return []byte("E\u0301") },
	func(*rand.Rand) []byte { return []byte("\u212a") }, // the sign of Kelvin folds to k
	func(*rand.Rand) []byte { return []byte(" key-00001 ") },
}

func (l *Load) key(rng *rand.Rand) []byte {
	if l.NastyKeys && rng.IntN(2) == 0 {
		if rng.IntN(20) == 0 {
			return []byte(strings.Repeat("k", maxKey-1) + string(rune('a'+rng.IntN(4))))
		}
		return nasty[rng.IntN(len(nasty))](rng)
	}
	if l.Keys == 0 {
		return nil
	}
	return fmt.Appendf(nil, "key-%05d", rng.IntN(l.Keys))
}

const letters = "abcdefghijklmnopqrstuvwxyz      \"\\<>&/\n\té鍵🔑"

var runes = []rune(letters)

// words are exactly n bytes of readable text.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		r := runes[rng.IntN(len(runes))]
		if b.Len()+len(string(r)) > n {
			r = 'x'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// textPayload is UTF-8 that is no JSON: it begins with a letter that begins none.
func textPayload(rng *rand.Rand, id string, size int) []byte {
	if size < roomy {
		if name := "x" + token(id); len(name) <= size {
			return []byte(name + words(rng, size-len(name)))
		}
		return []byte("x" + words(rng, size-1))
	}
	return []byte("x " + id + " " + words(rng, size-len(id)-3))
}

// binaryPayload is no UTF-8: it begins with a byte that no UTF-8 has.
func binaryPayload(rng *rand.Rand, id string, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[0] = 0xff
	switch name := token(id); {
	case size >= roomy:
		copy(b[1+rng.IntN(size-len(id)-1):], id)
	case size > len(name):
		copy(b[1:], name)
	}
	return b
}

var tinyJSON = []string{"0", "7", `""`, "{}", "[]", "-1", "1e9", `"é"`, "null", "true", "false", `[ 1 ]`, ` 5`, `"\u00e9"`, `{"a" : 1}`}

// jsonPayload is exactly one JSON value, in spellings that a careless encoder changes: white space inside and around, escapes, long numbers.
func jsonPayload(rng *rand.Rand, id string, size int) []byte {
	if size < roomy {
		if name := token(id); len(name)+2 <= size && rng.IntN(2) == 0 {
			return []byte(`"` + name + jsonWords(rng, size-len(name)-2) + `"`)
		}
		var fits []string
		for _, t := range tinyJSON {
			if len(t) <= size {
				fits = append(fits, t)
			}
		}
		return []byte(fits[rng.IntN(len(fits))])
	}
	var head, tail string
	switch rng.IntN(6) {
	case 0:
		head, tail = `{ "id" : "`+id+`", "n":1.50, "p":"`, `"}`
	case 1:
		head, tail = `["`+id+`",12345678901234567890,"`, `"]`
	case 2:
		head, tail = `"`+id+` `, `"` // a string alone, which looks like a text in an answer
	case 3:
		head, tail = ` {"id":"`+id+`","p":"`, "\"}\n" // white space around: no payload for a raw message
	default:
		head, tail = `{"id":"`+id+`","p":"`, `"}`
	}
	return []byte(head + jsonWords(rng, max(size-len(head)-len(tail), 0)) + tail)
}

// jsonWords are exactly n bytes of the inside of a JSON string, some of them escapes.
func jsonWords(rng *rand.Rand, n int) string {
	pieces := []string{"a", "b ", "\\n", "\\u00e9", "\\u003c", "<", "&", "\\/", "é", "🔑", "\\\"", "\u2028", "word "}
	var b strings.Builder
	for b.Len() < n {
		p := pieces[rng.IntN(len(pieces))]
		if b.Len()+len(p) > n {
			p = "x"
		}
		b.WriteString(p)
	}
	return b.String()
}

// AppendBatch writes the body of a batch produce by hand: a payload that is one JSON value without white space around it goes as it is,
// because an encoder of Go would change its bytes; everything else as base64 (DEC-33).
func AppendBatch(body []byte, records []Record) []byte {
	body = append(body, `{"messages":[`...)
	for i, r := range records {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"payload":`...)
		if raw(r.Payload) {
			body = append(body, r.Payload...)
		} else {
			body = append(body, '"')
			body = base64.StdEncoding.AppendEncode(body, r.Payload)
			body = append(body, `","payload_encoding":"base64"`...)
		}
		if len(r.Key) > 0 {
			body = append(body, `,"key_encoding":"base64","key":"`...)
			body = base64.StdEncoding.AppendEncode(body, r.Key)
			body = append(body, '"')
		}
		body = append(body, '}')
	}
	return append(body, `]}`...)
}

func raw(payload []byte) bool {
	if len(payload) == 0 || strings.ContainsRune(" \t\r\n", rune(payload[0])) || strings.ContainsRune(" \t\r\n", rune(payload[len(payload)-1])) {
		return false
	}
	return string(payload) != "null" && json.Valid(payload) && string([]rune(string(payload))) == string(payload)
}
