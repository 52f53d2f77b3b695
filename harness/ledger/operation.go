package ledger

// Kinds of an Operation.
const (
	KindProduce = "produce"
	KindAdmin   = "admin"
)

// Outcomes of an Operation. Unknown means that no answer came, or one that leaves open whether it was done: it may have been.
const (
	Acknowledged = "acknowledged"
	Refused      = "refused"
	Unknown      = "unknown"
)

// Operation is one record that the harness produced, or one thing that it asked a node to do (operations.jsonl).
type Operation struct {
	At        int64    `json:"at_ms"`
	Done      int64    `json:"done_ms"`
	Kind      string   `json:"kind"`
	Node      string   `json:"node"`
	Topic     string   `json:"topic,omitempty"`
	ID        string   `json:"id,omitempty"`        // of a produce: the record's marker (NewID)
	Key       string   `json:"key,omitempty"`       // base64 of the key's bytes; empty is none
	Payload   string   `json:"payload,omitempty"`   // SHA-256 of the payload, hex
	Seen      string   `json:"seen,omitempty"`      // SHA-256 of Visible(payload), only where it differs from Payload
	Shape     string   `json:"shape,omitempty"`     // json, text or binary
	Partition *int     `json:"partition,omitempty"` // set when the produce pinned one
	Bytes     int      `json:"bytes,omitempty"`     // payload bytes
	Batch     bool     `json:"batch,omitempty"`
	Outcome   string   `json:"outcome"`
	Status    int      `json:"status,omitempty"` // 0 when no answer came
	RequestID string   `json:"request_id,omitempty"`
	Action    string   `json:"action,omitempty"`  // of an admin operation: an audit event of api.md, such as "remote_child.pause"
	Target    string   `json:"target,omitempty"`  // of an admin operation: what it was about
	Expect    int      `json:"expect,omitempty"`  // of a scenario step: the status asked for
	Says      string   `json:"says,omitempty"`    // of a scenario step: words that its refusal must have
	Text      string   `json:"text,omitempty"`    // of an admin operation: the text of its refusal, or a good answer that names what it found or did; the judge of secrets looks in it
	Changed   []string `json:"changed,omitempty"` // of an admin operation that is about several things: those that its answer says it changed
	Problem   string   `json:"problem,omitempty"` // the class of a transport failure; never a body or a URL
}
