package move

import (
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

// encodeRead lays out an answer of MoveRead: the length of the head in 4 bytes, the head in JSON, then for each record the length of its body
// in 4 bytes and the body, as it lies in the source's log. Offsets follow on the first.
func encodeRead(b bounds, bodies [][]byte) ([]byte, error) {
	head, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode records of a move: %w", err)
	}
	size := 4 + len(head)
	for _, body := range bodies {
		size += 4 + len(body)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(head)))
	out = append(out, head...)
	for _, body := range bodies {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

// decodeRead reads an answer of MoveRead whose first record has the offset from; the bodies point into data.
func decodeRead(data []byte, from int64) (b bounds, s partition.Stored, err error) {
	cut := func() []byte {
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			err, data = errBody, nil
			return nil
		}
		end := 4 + int(binary.LittleEndian.Uint32(data))
		part := data[4:end:end]
		data = data[end:]
		return part
	}
	head := cut()
	if err != nil || json.Unmarshal(head, &b) != nil {
		return b, partition.Stored{}, errBody
	}
	s.First = from
	for len(data) > 0 {
		s.Bodies = append(s.Bodies, cut())
	}
	if err != nil {
		return b, partition.Stored{}, err
	}
	return b, s, nil
}
