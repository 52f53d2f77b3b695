package wire

import "encoding/json"

// Base64 is the one value that payload_encoding and key_encoding take.
const Base64 = "base64"

// HeaderIfTopicID names the target's incarnation that a chunk is meant for (RUN-12); HeaderRequestID names a request
// (SND-14, DEC-36); HeaderClient marks a request as no browser's.
const (
	HeaderIfTopicID = "X-Narad-If-Topic-Id"
	HeaderRequestID = "X-Narad-Request-Id"
	HeaderClient    = "X-Narad-Client"
	HeaderClamped   = "X-Narad-Wait-Clamped"
)

// Message is a record as consume and replay answer it. Valid JSON comes back as JSON, other UTF-8 as a JSON string, the rest
// as base64.
type Message struct {
	Topic           string          `json:"topic"`
	Partition       int             `json:"partition"`
	Offset          int64           `json:"offset"`
	Key             string          `json:"key,omitempty"`
	KeyEncoding     string          `json:"key_encoding,omitempty"`
	Payload         json.RawMessage `json:"payload"`
	PayloadEncoding string          `json:"payload_encoding,omitempty"`
	Timestamp       int64           `json:"timestamp"` // Unix seconds
	ReceiptHandle   string          `json:"receipt_handle,omitempty"`
}

// Messages is the answer to a consume with max.
type Messages struct {
	Messages []Message `json:"messages"`
}

// Accepted is the 202 of a batch produce.
type Accepted struct {
	Accepted int `json:"accepted"`
}

// AckBatch is the body of a batch ack.
type AckBatch struct {
	ReceiptHandles []string `json:"receipt_handles"`
}

// AckResults answers a batch ack, one result for each handle in the order asked.
type AckResults struct {
	Results []AckResult `json:"results"`
}

// AckResult is 204, or a status with an error.
type AckResult struct {
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
}

// Health is the body of /healthz and /readyz.
type Health struct {
	Status   string `json:"status"`
	Degraded string `json:"degraded,omitempty"`
}

// Unshipped is the body of a refused detach or delete (UNS-02).
type Unshipped struct {
	Error                string           `json:"error"`
	LagMessages          int64            `json:"lag_messages"`
	LagComplete          bool             `json:"lag_complete"`
	DispatchBacklog      map[string]int64 `json:"dispatch_backlog"`
	NotAnswering         []string         `json:"not_answering,omitempty"`
	BacklogOverScanLimit []string         `json:"backlog_over_scan_limit,omitempty"`
}
