package ledger

// Outcomes of a WireRequest.
const (
	WireAccepted = "accepted" // a batch produce that the target answered 202
	WireRefused  = "refused"  // an answer with a status of 400 or more, or a redirect
	WireAnswered = "answered" // any other answer: checks, lookups, a 2xx that is no commit
	WireCut      = "cut"      // the connection ended before the request was whole or before an answer
	WireHung     = "hung"     // a fake never answered, by its script

	WireElsewhere = "elsewhere" // it came to the host of a redirect, where nothing may come (NET-03)
)

// Steps of a WireRequest that came elsewhere.
const (
	ElsewhereBare       = "without a credential"
	ElsewhereCredential = "with a credential"
)

// WireRequest is one request that a tap or a fake saw (wire.jsonl), written when its answer went out. Seq is the order of
// these answers at one tap, from 1.
type WireRequest struct {
	Seq       int64        `json:"seq"`
	At        int64        `json:"at_ms"`
	Done      int64        `json:"done_ms"`
	Tap       string       `json:"tap"`
	Method    string       `json:"method"`
	Path      string       `json:"path"`
	Topic     string       `json:"topic,omitempty"`
	RequestID string       `json:"request_id,omitempty"`
	TopicID   string       `json:"topic_id,omitempty"` // X-Narad-If-Topic-Id
	Status    int          `json:"status,omitempty"`
	Outcome   string       `json:"outcome"`
	Sent      bool         `json:"sent"`  // the answer was written to the caller, as far as the tap can tell
	Bytes     int          `json:"bytes"` // of the body, as sent
	Encoding  string       `json:"encoding,omitempty"`
	Records   []WireRecord `json:"records,omitempty"`
	Pinned    bool         `json:"pinned,omitempty"` // the request, or one of its records, names a partition (SND-08)
	// RetryAfter is the answer's header as it stands; several are joined by ", ".
	RetryAfter string `json:"retry_after,omitempty"`
	// Doubt says that the target took the records and that the caller did not get a 202 which says so.
	Doubt bool   `json:"doubt,omitempty"`
	Step  string `json:"step,omitempty"` // the fake's script step that answered
}

// WireRecord is one record of a batch on the wire, decoded.
type WireRecord struct {
	ID      string `json:"id,omitempty"`
	Key     string `json:"key,omitempty"`    // base64 of the key's bytes
	Payload string `json:"payload"`          // SHA-256 of the decoded payload, hex
	Base64  bool   `json:"base64,omitempty"` // the payload travelled as base64
}

// Produces tells whether r carried records to the batch route.
func (r *WireRequest) Produces() bool { return len(r.Records) > 0 }

// Stored is one record of a log, read back through the API by replay (parent.jsonl, target.jsonl).
type Stored struct {
	Topic      string `json:"topic"`
	Partition  int    `json:"partition"`
	Offset     int64  `json:"offset"`
	ID         string `json:"id,omitempty"`
	Key        string `json:"key,omitempty"` // base64 of the key's bytes
	Payload    string `json:"payload"`       // SHA-256 of Visible(payload), hex
	TimestampS int64  `json:"timestamp_s"`
	Gone       int64  `json:"gone_ms,omitempty"` // when the topic's incarnation that held it was deleted: nobody owes it any more
}
