package wire

import "time"

// NewRecord is one record on its way in, decoded, before it has an offset.
type NewRecord struct {
	Key       []byte // nil or empty is none
	Payload   []byte // 1 byte to 1 MiB
	Partition int    // -1 lets the broker choose
}

// Delivery is one record on its way out to a consumer or a replay, before it becomes JSON.
type Delivery struct {
	Topic     string
	Partition int
	Offset    int64
	Key       []byte
	Payload   []byte
	Committed time.Time
	Handle    string // "partition:offset:nonce"; empty on a replay
}
