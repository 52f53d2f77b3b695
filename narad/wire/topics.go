package wire

import "encoding/json"

// CreateTopic is the body of POST /v1/topics. A pointer is nil when the member is absent: absence and zero differ for
// retention_ms (absent 7 days, 0 forever); for the others 0 means the default.
type CreateTopic struct {
	Name                      string          `json:"name"`
	Partitions                int             `json:"partitions,omitempty"`
	RetentionMS               *int64          `json:"retention_ms,omitempty"`
	VisibilityTimeoutMS       int64           `json:"visibility_timeout_ms,omitempty"`
	MaxInFlightPerPartition   int             `json:"max_in_flight_per_partition,omitempty"`
	MaxAckedAheadPerPartition int             `json:"max_acked_ahead_per_partition,omitempty"`
	Schema                    json.RawMessage `json:"schema,omitempty"`
	Parent                    string          `json:"parent,omitempty"`
	FanoutDelayMS             int64           `json:"fanout_delay_ms,omitempty"`
	Owner                     string          `json:"owner,omitempty"` // known and ignored
}

// AlterTopic is the body of PATCH /v1/topics/{t}; an absent member stays as it is.
type AlterTopic struct {
	RetentionMS               *int64          `json:"retention_ms,omitempty"`
	MaxInFlightPerPartition   *int            `json:"max_in_flight_per_partition,omitempty"`
	MaxAckedAheadPerPartition *int            `json:"max_acked_ahead_per_partition,omitempty"`
	Partitions                *int            `json:"partitions,omitempty"`
	Schema                    json.RawMessage `json:"schema,omitempty"`
	SchemaBaseVersion         *int            `json:"schema_base_version,omitempty"`
}

// Topic roles.
const (
	Standalone = "standalone"
	Parent     = "parent"
	Child      = "child"
)

// Topic is a topic as answers show it. Times are Unix seconds, *_ms milliseconds.
type Topic struct {
	Name                      string   `json:"name"`
	ID                        string   `json:"id"` // 16 hex, new for each incarnation
	Partitions                int      `json:"partitions"`
	RetentionMS               int64    `json:"retention_ms"`
	VisibilityTimeoutMS       int64    `json:"visibility_timeout_ms"`
	MaxInFlightPerPartition   int      `json:"max_in_flight_per_partition"`
	MaxAckedAheadPerPartition int      `json:"max_acked_ahead_per_partition"`
	CreatedAt                 int64    `json:"created_at"`
	Owner                     string   `json:"owner,omitempty"`
	Role                      string   `json:"role"`
	Children                  []string `json:"children,omitempty"`
	Parent                    string   `json:"parent,omitempty"`
	AttachEpoch               string   `json:"attach_epoch,omitempty"` // 16 hex
	FanoutDelayMS             int64    `json:"fanout_delay_ms,omitempty"`
	AttachOffsets             []int64  `json:"attach_offsets,omitempty"` // by parent partition
	Remote                    *Link    `json:"remote,omitempty"`
}

// TopicDetail is the answer to GET /v1/topics/{t}.
type TopicDetail struct {
	Topic
	SchemaVersion  int              `json:"schema_version"`
	Schema         json.RawMessage  `json:"schema,omitempty"`
	PartitionStats []PartitionStats `json:"partition_stats"`
	Partial        bool             `json:"partial,omitempty"`
}

// SchemaHistory is the answer to GET /v1/topics/{t}/schema; Version is 0 and Versions empty without a schema.
type SchemaHistory struct {
	Topic    string          `json:"topic"`
	Version  int             `json:"version"`
	Versions []SchemaVersion `json:"versions"`
}

// SchemaVersion is one version of a topic's JSON Schema, from 1.
type SchemaVersion struct {
	Version int             `json:"version"`
	Schema  json.RawMessage `json:"schema"`
}

// PartitionStats describes one partition's log.
type PartitionStats struct {
	Index           int    `json:"index"`
	Segments        int    `json:"segments"`
	OldestOffset    int64  `json:"oldest_offset"`
	NextOffset      int64  `json:"next_offset"`
	HighWatermark   int64  `json:"high_watermark"`
	SizeBytes       int64  `json:"size_bytes"`
	OldestSegmentAt int64  `json:"oldest_segment_at"`
	OwnerNode       string `json:"owner_node"`
	Status          string `json:"status"` // ok or owner_unavailable
	OwnerLiveness   string `json:"owner_liveness,omitempty"`
}

// TopicPage is the answer to GET /v1/topics.
type TopicPage struct {
	Topics        []Topic `json:"topics"`
	NextPageToken string  `json:"next_page_token"`
}
