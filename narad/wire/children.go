package wire

// Start modes of a remote child (CUR-05).
const (
	FromAttach     = "attach"     // the parent's committed high watermark
	FromUnconsumed = "unconsumed" // the consumer frontier
	FromEarliest   = "earliest"   // the oldest retained offset
)

// AttachChild is the body of POST /v1/topics/{p}/children. With Remote it makes a remote child, else it attaches a topic.
type AttachChild struct {
	Child       string `json:"child"`
	DelayMS     int64  `json:"delay_ms,omitempty"`
	Remote      string `json:"remote,omitempty"`
	RemoteTopic string `json:"remote_topic,omitempty"` // default: the parent's name
	From        string `json:"from,omitempty"`
	Lanes       int    `json:"lanes,omitempty"`
	DryRun      bool   `json:"dry_run,omitempty"`
}

// Attached is the 201 of a remote attach: the stub and its warnings.
type Attached struct {
	Topic
	Warnings []string `json:"warnings"`

	Checks       []Check       `json:"-"` // of a dry run
	Capabilities *Capabilities `json:"-"` // of a dry run
}

// DryRun is the 200 of an attach that only asked (TGT-12). Capabilities are absent while the node has no allowlist.
type DryRun struct {
	AttachOffsets []int64       `json:"attach_offsets"`
	Capabilities  *Capabilities `json:"capabilities,omitempty"`
	Checks        []Check       `json:"checks"`
	DryRun        bool          `json:"dry_run"`
	Warnings      []string      `json:"warnings"`
}

// Link is the remote object of a stub (CUR-01).
type Link struct {
	Name        string             `json:"name"` // of the remote
	Topic       string             `json:"topic"`
	TargetID    string             `json:"target_id,omitempty"`
	From        string             `json:"from"`
	Lanes       int                `json:"lanes"`
	Paused      bool               `json:"paused"`
	PauseReason string             `json:"pause_reason,omitempty"`
	PausedBy    string             `json:"paused_by,omitempty"`
	PausedAtMS  int64              `json:"paused_at_ms,omitempty"`
	Skip        map[string][]int64 `json:"skip,omitempty"` // by parent partition
	CreatedBy   string             `json:"created_by,omitempty"`
}

// Children is the answer to GET /v1/topics/{p}/children.
type Children struct {
	Parent   string       `json:"parent"`
	ParentID string       `json:"parent_id"`
	Children []ChildEntry `json:"children"`
}

// ChildEntry is one child; the members from Remote on stand in a remote child's entry only.
type ChildEntry struct {
	Name        string `json:"name"`
	DelayMS     int64  `json:"delay_ms"`
	LagMessages int64  `json:"lag_messages"`
	LagComplete bool   `json:"lag_complete"`
	*RemoteEntry
}

// RemoteEntry is what the listing says of a link (LST-03, LST-04). Times are RFC 3339.
type RemoteEntry struct {
	Remote                   string           `json:"remote"`
	Paused                   bool             `json:"paused"`
	State                    LinkState        `json:"state"`
	LagSeconds               float64          `json:"lag_seconds"`
	RetentionHeadroomSeconds *float64         `json:"retention_headroom_seconds,omitempty"`
	SourceDrained            bool             `json:"source_drained"`
	BlockedAt                *BlockedAt       `json:"blocked_at"`
	TargetVerifiedAt         *string          `json:"target_verified_at"`
	Unverified               bool             `json:"unverified,omitempty"`
	LastSuccessAt            *string          `json:"last_success_at"`
	Partitions               []ChildPartition `json:"partitions,omitempty"`
}

// BlockedAt is the record that a lane is stuck on.
type BlockedAt struct {
	Partition int       `json:"partition"`
	Offset    int64     `json:"offset"`
	State     LinkState `json:"state"`
}

// ChildPartition is one parent partition of a link, with partitions=true. Offsets are null when the owner did not report.
type ChildPartition struct {
	Partition     int        `json:"partition"`
	Node          string     `json:"node"`
	StartOffset   int64      `json:"start_offset"`
	NextOffset    *int64     `json:"next_offset"`
	HighWatermark *int64     `json:"high_watermark"`
	AckFrontier   *int64     `json:"ack_frontier"`
	State         LinkState  `json:"state"`
	LastSuccessAt *string    `json:"last_success_at"`
	BlockedAt     *BlockedAt `json:"blocked_at"`
}
