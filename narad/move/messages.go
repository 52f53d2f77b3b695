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

// Ops lists those of Handle; Read answers OpRead.
var Ops = []string{OpFreeze, OpFiles, OpFence}

// ask is the body of every op.
type ask struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	Attempt   string `json:"attempt"`
	Applied   uint64 `json:"applied"`           // the source answers once it has applied this
	Token     string `json:"token,omitempty"`   // of the freeze
	From      int64  `json:"from,omitempty"`    // MoveRead: the first offset; below 0 asks for the bounds alone
	Records   int    `json:"records,omitempty"` // MoveRead: at most so many; 0 leaves it to the source
}

// bounds are what the source holds. They are the answer to MoveFreeze and MoveFence.
type bounds struct {
	Oldest int64 `json:"oldest"`
	High   int64 `json:"high"`
}

// readHead stands before the records in an answer of MoveRead.
type readHead struct {
	bounds
	Records int `json:"records"` // how many follow
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

// headOf begins an answer of MoveRead: the length of the head in 4 bytes and the head in JSON. The records follow as they lie in the source's log
// (partition.Stored), which says their offsets and their checksums.
func headOf(b bounds, records int) ([]byte, error) {
	head, err := json.Marshal(readHead{b, records})
	if err != nil {
		return nil, fmt.Errorf("encode records of a move: %w", err)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head...), nil
}

// decodeRead reads an answer of MoveRead whose first record has the offset from; the records point into data.
func decodeRead(data []byte, from int64) (bounds, partition.Stored, error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return bounds{}, partition.Stored{}, errBody
	}
	end := 4 + int(binary.LittleEndian.Uint32(data))
	var h readHead
	if err := json.Unmarshal(data[4:end], &h); err != nil || h.Records < 0 || (h.Records == 0) != (end == len(data)) {
		return bounds{}, partition.Stored{}, errBody
	}
	return h.bounds, partition.Stored{First: from, Records: h.Records, Frames: data[end:]}, nil
}
