package bench

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// RecordBytes is the payload size of every measured record.
const RecordBytes = 1024

// eventBytes is room for an event without its text.
const eventBytes = 400

var nouns = strings.Fields("order parcel invoice refund depot driver street return label pallet booking transfer receipt voucher ticket route")

// payload appends a compact JSON event of exactly RecordBytes bytes, the same for the same i.
func payload(dst []byte, i int) []byte { return sized(dst, i, RecordBytes) }

// sized appends a JSON value of exactly size bytes, at least 16; small ones are a string.
func sized(dst []byte, i, size int) []byte {
	if size < eventBytes {
		return append(fmt.Appendf(append(dst, '"'), "%0*d", size-2, i), '"')
	}
	r := rand.New(rand.NewPCG(uint64(i), 11))
	start := len(dst)
	dst = fmt.Appendf(dst, `{"event":"e-%09d","at":%d,"total":%d.%02d,"lines":[`, i, 1_790_000_000_000+int64(i)*7, r.IntN(9000), r.IntN(100))
	for k := range 5 {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, `{"article":"A-%06d","count":%d,"price":%d.%02d}`, r.IntN(1_000_000), r.IntN(9)+1, r.IntN(500), r.IntN(100))
	}
	dst = append(dst, `],"text":"`...)
	for len(dst)-start < size-2 {
		dst = append(dst, nouns[r.IntN(len(nouns))]...)
		dst = append(dst, ' ')
	}
	dst = append(dst[:start+size-2], '"', '}')
	return dst
}

// key is one of 1,000 keys.
func key(i int) string { return fmt.Sprintf("customer-%04d", (i*7919)%1000) }

// writeFrames writes n records in the floor's own framing: key length, payload length, key, payload.
func writeFrames(w io.Writer, n int) error {
	var frame, body []byte
	for i := range n {
		body = payload(body[:0], i)
		k := key(i)
		frame = binary.LittleEndian.AppendUint32(frame[:0], uint32(len(k)))
		frame = binary.LittleEndian.AppendUint32(frame, uint32(len(body)))
		frame = append(append(frame, k...), body...)
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	return nil
}

// noise is size bytes that are no UTF-8, as base64, the same for the same i.
func noise(i, size int) string {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(i))
	body := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(body) // never fails
	body[0] = 0xff
	return base64.StdEncoding.EncodeToString(body)
}
