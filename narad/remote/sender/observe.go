package sender

import (
	"time"

	"narad.example/narad/wire"
)

// Observer is told what the metrics count (metrics.md). Its methods are called from many goroutines and must not block.
type Observer interface {
	// Request counts a request when it ended: the status in digits or "error", its whole time, the plain body and what of it
	// went on the wire.
	Request(remote, code string, took time.Duration, bodyBytes, wireBytes int)
	// Error counts a request that failed: a link state or "edge".
	Error(remote, class string)
	// Resent counts the records of a request that failed after a part of its body may have left.
	Resent(remote string, records int)
	// GateBackoff is the present wait of a closed gate, 0 for an open one.
	GateBackoff(remote string, wait time.Duration)
	// SlotWait is how long a chunk waited for one of the remote's slots.
	SlotWait(remote string, wait time.Duration)
	// ChunkLimit is the lowest byte cap of the node's lanes to a remote.
	ChunkLimit(remote string, bytes int)
	// State is a cursor's state whenever it changes; "" when the cursor ended and its series goes (CUR-13).
	State(parent, child string, partition int, state wire.LinkState)
	// Skipped counts records that a lane passed unsent because an admin skipped them.
	Skipped(parent, child string, records int)
	// CheckFailed counts a target check that errored (RUN-08).
	CheckFailed(parent, child string)
	// Held is how many bytes of records all waiting lanes of the node hold now.
	Held(bytes int64)
}

// silent is the Observer of those who want none.
type silent struct{}

func (silent) Request(string, string, time.Duration, int, int) {}
func (silent) Error(string, string)                            {}
func (silent) Resent(string, int)                              {}
func (silent) GateBackoff(string, time.Duration)               {}
func (silent) SlotWait(string, time.Duration)                  {}
func (silent) ChunkLimit(string, int)                          {}
func (silent) State(string, string, int, wire.LinkState)       {}
func (silent) Skipped(string, string, int)                     {}
func (silent) CheckFailed(string, string)                      {}
func (silent) Held(int64)                                      {}
