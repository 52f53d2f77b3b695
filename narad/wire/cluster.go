package wire

// Moves is the answer to GET /v1/cluster/moves.
type Moves struct {
	Moves []Move `json:"moves"`
}

// Statuses of a member.
const (
	MemberAlive = "alive"
	MemberDead  = "dead"
)

// Move is a partition on its way to another member. Blocked names what keeps it from its end, absent when nothing is known to.
type Move struct {
	Topic      string `json:"topic"`
	Partition  int    `json:"partition"`
	From       string `json:"from"`
	To         string `json:"to"`
	FromStatus string `json:"from_status"`
	ToStatus   string `json:"to_status"`
	Blocked    string `json:"blocked,omitempty"`
}

// AbortedMove is the answer to POST /v1/cluster/moves/{topic}/{partition}/abort.
type AbortedMove struct {
	Move Move   `json:"move"`
	Note string `json:"note"`
}
