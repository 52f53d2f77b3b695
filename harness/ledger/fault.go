package ledger

// Fault is one thing that the harness broke, with the proof that it was broken (faults.jsonl).
type Fault struct {
	Name     string         `json:"name"` // unique in the scenario, with its parameters
	Kind     string         `json:"kind"` // a toxic's type, or kill, stop, start, pause, cut, clock, a disk's fault
	On       string         `json:"on"`   // a node, or "source>target"
	Start    int64          `json:"start_ms"`
	End      int64          `json:"end_ms"`
	Landed   bool           `json:"landed"`
	Evidence map[string]any `json:"evidence,omitempty"`
}

// Members of the evidence of a kill between the commit of a remote write and its audit line: the request and its Raft index.
const (
	CommittedRequest = "committed_request"
	CommittedIndex   = "committed_index"
)

// Sample is one look at a link or at a node (links.jsonl). One with a Child is an entry of the children listing, asked of
// Node; one without is what Node itself reported: its backlog and its metrics.
type Sample struct {
	At          int64              `json:"at_ms"`
	Node        string             `json:"node"`
	Parent      string             `json:"parent,omitempty"`
	Child       string             `json:"child,omitempty"`
	Silent      bool               `json:"silent,omitempty"` // the node did not answer; the rest says nothing
	State       string             `json:"state,omitempty"`
	Blocked     string             `json:"blocked,omitempty"` // "partition:offset state"
	Lag         int64              `json:"lag"`
	LagComplete bool               `json:"lag_complete"`
	Backlog     int64              `json:"backlog"`
	Metrics     map[string]float64 `json:"metrics,omitempty"` // by series, as in `narad_remote_resent_records_total{remote="b"}`
	Produced    int64              `json:"produced"`          // acknowledged so far
	OnWire      int64              `json:"on_wire"`           // records in accepted requests so far
	OnTarget    int64              `json:"on_target"`         // records read in the target's logs so far
}

// AuditLine is one audit line of a node's log (audit.jsonl), in the order of that log.
type AuditLine struct {
	Node      string `json:"node"`
	At        int64  `json:"at_ms"`
	Event     string `json:"event"`
	Actor     string `json:"actor"`
	Target    string `json:"target"`
	Outcome   string `json:"outcome"`
	Status    int    `json:"status,omitempty"`
	RequestID string `json:"request_id"`
	Stage     string `json:"stage"`           // ingress or leader
	Index     uint64 `json:"index,omitempty"` // the Raft index of a committed leader line
	Replayed  bool   `json:"replayed,omitempty"`
}
