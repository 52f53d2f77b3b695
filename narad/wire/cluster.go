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

// Members is the answer to GET /v1/cluster/members.
type Members struct {
	Members []Member `json:"members"`
}

// Member is one node of the cluster. HeartbeatAgeSeconds is null when nobody who leads could be asked. Partitions is there with detail=true.
type Member struct {
	ID                  string        `json:"id"`
	Addr                string        `json:"addr"` // of the node RPC
	Status              string        `json:"status"`
	Draining            bool          `json:"draining"`
	OwnedPartitions     int           `json:"owned_partitions"`
	OutboundMoves       int           `json:"outbound_moves"`
	Voter               bool          `json:"voter"`
	Leader              bool          `json:"leader"`
	HeartbeatAgeSeconds *float64      `json:"heartbeat_age_seconds"`
	DecommissionBlocked []Reason      `json:"decommission_blocked,omitempty"`
	Partitions          []MemberTopic `json:"partitions,omitempty"`
}

// MemberTopic is what a member owns of a topic, in ascending order.
type MemberTopic struct {
	Topic      string `json:"topic"`
	Partitions []int  `json:"partitions"`
}

// Reason is why something does not go on.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Reasons that refuse a decommission, or keep one from its end.
const (
	BelowMinVoters    = "below_min_voters"
	NoHealthyMajority = "no_healthy_majority"
	NoReceivers       = "no_receivers"
	OwnerDead         = "owner_dead"
	BacklogWaits      = "backlog"         // only of one that goes on
	BacklogUnknown    = "backlog_unknown" // as BacklogWaits
	MovesFailed       = "moves_failed"    // as BacklogWaits
)

// Decommission is the answer to a dry run of a decommission.
type Decommission struct {
	Member            string   `json:"member"`
	WouldDecommission bool     `json:"would_decommission"`
	Reasons           []string `json:"reasons"`
	Voter             bool     `json:"voter"`
	OwnedPartitions   int      `json:"owned_partitions"`
	InboundMoves      int      `json:"inbound_moves"`
}

// Forgotten is the answer to POST /v1/cluster/members/{id}/forget.
type Forgotten struct {
	ID    string `json:"id"`
	Voter bool   `json:"voter"`
}
