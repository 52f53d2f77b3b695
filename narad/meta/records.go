package meta

import (
	"encoding/json"
	"slices"

	"narad.example/narad/wire"
)

// Topic is one topic, or one stub of a remote child, as the state holds it. A value that a reader got is its own copy at the
// top level; its slices and pointers belong to the state and are never written to.
type Topic struct {
	Name                string   `json:"name"`
	ID                  string   `json:"id"` // 16 hex, new for each incarnation (BRK-09)
	Partitions          int      `json:"partitions"`
	RetentionMS         int64    `json:"retention_ms"` // 0 keeps forever
	VisibilityTimeoutMS int64    `json:"visibility_timeout_ms"`
	MaxInFlight         int      `json:"max_in_flight"`
	MaxAckedAhead       int      `json:"max_acked_ahead"`
	CreatedAt           int64    `json:"created_at"` // Unix seconds
	Owner               string   `json:"owner,omitempty"`
	Nodes               []string `json:"nodes,omitempty"` // owner of each partition, by index
	Moves               []Move   `json:"moves,omitempty"` // in the order of their partitions

	Parent        string      `json:"parent,omitempty"`
	AttachEpoch   string      `json:"attach_epoch,omitempty"` // 16 hex, new for each attach (CUR-04)
	FanoutDelayMS int64       `json:"fanout_delay_ms,omitempty"`
	AttachOffsets []int64     `json:"attach_offsets,omitempty"` // by parent partition; one added later starts at 0
	Remote        *RemoteLink `json:"remote,omitempty"`         // nil for every topic that is no stub

	Schemas []Schema `json:"schemas,omitempty"` // version 1 first; a local child has its parent's
}

// Schema is one version of a topic's JSON Schema (BRK-11).
type Schema struct {
	Body json.RawMessage `json:"body"`
	Sum  string          `json:"sum"` // of its JSON value
}

// Schema is the current schema and its version, 0 for none.
func (t *Topic) Schema() (Schema, int) {
	n := len(t.Schemas)
	if n == 0 {
		return Schema{}, 0
	}
	return t.Schemas[n-1], n
}

// Move is a partition on its way to another owner (BRK-07; narad/move/DESIGN.md). Attempt is the one that may flip it, empty when
// none may.
type Move struct {
	Partition int    `json:"partition"`
	To        string `json:"to"`
	ID        string `json:"id"` // 16 hex, new for each move
	Attempt   string `json:"attempt,omitempty"`
}

// Move returns the move of a partition.
func (t *Topic) Move(partition int) (Move, bool) {
	for _, m := range t.Moves {
		if m.Partition == partition {
			return m, true
		}
	}
	return Move{}, false
}

// NodeOf is the owner of a partition, empty when the topic has no such partition.
func (t *Topic) NodeOf(partition int) string {
	if partition < 0 || partition >= len(t.Nodes) {
		return ""
	}
	return t.Nodes[partition]
}

// IsStub tells whether the record is a remote child's.
func (t *Topic) IsStub() bool { return t.Remote != nil }

// StartOffset is where a cursor of this child starts on a parent partition when it has no position of its own (CUR-04).
func (t *Topic) StartOffset(partition int) int64 {
	if partition < len(t.AttachOffsets) {
		return t.AttachOffsets[partition]
	}
	return 0
}

// RemoteLink is what makes a child a remote child (CUR-01).
type RemoteLink struct {
	Remote      string          `json:"remote"` // name of the remote
	Topic       string          `json:"topic"`  // on the target
	TargetID    string          `json:"target_id,omitempty"`
	From        string          `json:"from"` // wire.FromAttach, ...
	Lanes       int             `json:"lanes"`
	Paused      bool            `json:"paused,omitempty"`
	PauseReason string          `json:"pause_reason,omitempty"`
	PausedBy    string          `json:"paused_by,omitempty"`
	PausedAtMS  int64           `json:"paused_at_ms,omitempty"`
	Skip        map[int][]int64 `json:"skip,omitempty"` // offsets by parent partition, ascending
	CreatedBy   string          `json:"created_by,omitempty"`
}

// Skips tells whether an admin has skipped the offset.
func (l *RemoteLink) Skips(partition int, offset int64) bool {
	_, ok := slices.BinarySearch(l.Skip[partition], offset)
	return ok
}

// Remote is another cluster that links may send to. Ciphertext is the sealed password; nothing here is the password.
type Remote struct {
	Name              string      `json:"name"`
	ID                string      `json:"id"` // 16 hex
	URL               string      `json:"url"`
	Username          string      `json:"username"`
	CAPEM             string      `json:"ca_pem,omitempty"`
	Ciphertext        []byte      `json:"ciphertext"`
	KeyVersion        string      `json:"key_version"`
	Fingerprint       string      `json:"fingerprint"`        // 12 hex (CRD-05)
	CredentialVersion uint64      `json:"credential_version"` // moves with URL, user, CA, password; not with a re-encrypt (DEC-32)
	Limits            wire.Limits `json:"limits"`             // every member set
	Revision          uint64      `json:"revision"`           // moves with every change (DEC-31)
	SetAtMS           int64       `json:"set_at_ms"`
	SetBy             string      `json:"set_by"`
	CreatedAtMS       int64       `json:"created_at_ms"`
	CreatedBy         string      `json:"created_by"`
}

// User is one user; Hash is bcrypt.
type User struct {
	Name        string       `json:"name"`
	Hash        []byte       `json:"hash"`
	Grants      []wire.Grant `json:"grants,omitempty"`
	Root        bool         `json:"root,omitempty"`
	CreatedAtMS int64        `json:"created_at_ms"`
	UpdatedAtMS int64        `json:"updated_at_ms"`
}

// Member is one node of the cluster. Applies is the newest entry type that its release applies (WRT-02).
type Member struct {
	ID          string    `json:"id"`
	RaftAddr    string    `json:"raft_addr"`
	RPCAddr     string    `json:"rpc_addr"`
	Applies     EntryType `json:"applies"`
	HeartbeatMS int64     `json:"heartbeat_ms"`
	Drain       string    `json:"drain,omitempty"`   // ID of its decommission, new for each: it gets no partition and takes no produce
	Leaving     bool      `json:"leaving,omitempty"` // draining and empty: nothing calls it back any more
}

// Draining tells whether the member is being decommissioned.
func (m *Member) Draining() bool { return m.Drain != "" }
