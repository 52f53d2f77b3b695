package move

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"narad.example/narad/partition"
	"narad.example/narad/queue"
)

// The ops of a source. The words travel between releases.
const (
	OpRead   = "MoveRead"
	OpFreeze = "MoveFreeze"
	OpFiles  = "MoveFiles"
	OpFence  = "MoveFence"
)

// Ops lists them.
var Ops = []string{OpRead, OpFreeze, OpFiles, OpFence}

// ask is the body of every op.
type ask struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	Attempt   string `json:"attempt"`
	Applied   uint64 `json:"applied"`         // the source answers once it has applied this
	Token     string `json:"token,omitempty"` // of the freeze
	From      int64  `json:"from,omitempty"`  // MoveRead: the first offset; below 0 asks for the bounds alone
}

// bounds are what the source holds. They are the answer to MoveFreeze and MoveFence, and the head of MoveRead's.
type bounds struct {
	Oldest int64 `json:"oldest"`
	High   int64 `json:"high"`
}

// file is one file that travels with the partition.
type file struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

type filesAnswer struct {
	Files []file `json:"files"`
}

// travels tells whether a file beside the log goes with the partition: consumer state and cursor files (CUR-12).
func travels(name string) bool {
	cursor := strings.HasPrefix(name, "fanout-") && strings.HasSuffix(name, ".offset")
	return filepath.Base(name) == name && (cursor || name == queue.FileName)
}

var errBody = errors.New("the source's records do not decode")

// encodeRead lays out an answer of MoveRead: the length of the head in 4 bytes, the head in JSON, then for each record its commit time in 8
// bytes, the length of its key plus one (0 is none) and that of its payload in 4 each, and both. Offsets follow on the first.
func encodeRead(b bounds, recs []partition.Record) ([]byte, error) {
	head, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode records of a move: %w", err)
	}
	size := 4 + len(head)
	for i := range recs {
		size += 16 + len(recs[i].Key) + len(recs[i].Payload)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(head)))
	out = append(out, head...)
	for i := range recs {
		r := &recs[i]
		key := uint32(0)
		if r.Key != nil {
			key = uint32(len(r.Key)) + 1
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(r.CommitMS))
		out = binary.LittleEndian.AppendUint32(out, key)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(r.Payload)))
		out = append(append(out, r.Key...), r.Payload...)
	}
	return out, nil
}

// decodeRead reads an answer of MoveRead whose first record has the offset from; the records point into data.
func decodeRead(data []byte, from int64) (b bounds, recs []partition.Record, err error) {
	cut := func(n int) []byte {
		if n < 0 || n > len(data) {
			err, data = errBody, nil
			return make([]byte, min(max(n, 0), 8))
		}
		part := data[:n:n]
		data = data[n:]
		return part
	}
	number := func() int { return int(binary.LittleEndian.Uint32(cut(4))) }
	head := cut(number())
	if err != nil || json.NewDecoder(bytes.NewReader(head)).Decode(&b) != nil {
		return b, nil, errBody
	}
	for len(data) > 0 {
		r := partition.Record{Offset: from + int64(len(recs)), CommitMS: int64(binary.LittleEndian.Uint64(cut(8)))}
		key, payload := number(), number()
		if key > 0 {
			r.Key = cut(key - 1)
		}
		r.Payload = cut(payload)
		if err != nil {
			return b, nil, err
		}
		recs = append(recs, r)
	}
	return b, recs, nil
}
