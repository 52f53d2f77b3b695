package ledger

// SoakName is the head of a soak's folder, which holds the rounds that are kept below RoundsName, each a run folder.
const (
	SoakName   = "soak.json"
	RoundsName = "rounds"
)

// Soak is soak.json. It is whole after every round, so that one that was killed has all rounds before. Started, Updated and Ended are RFC 3339.
type Soak struct {
	Seed      uint64            `json:"seed"`
	First     int               `json:"first"`
	Backend   string            `json:"backend"`
	Commit    string            `json:"commit"`
	Versions  map[string]string `json:"versions"`
	Command   string            `json:"command"` // that makes the same row of rounds
	ForMS     int64             `json:"for_ms"`  // no round begins after it
	RoundMS   int64             `json:"round_ms"`
	Started   string            `json:"started"`
	Updated   string            `json:"updated"`
	Ended     string            `json:"ended,omitempty"`   // empty while it runs, and of one that was killed
	Playing   int               `json:"playing,omitempty"` // the round that runs, 0 between rounds
	Verdict   string            `json:"verdict"`           // inconclusive until it has ended
	Says      string            `json:"says"`              // why it ended
	Totals    SoakTotals        `json:"totals"`
	Hours     []SoakHour        `json:"hours"`
	Slowest   []Recovery        `json:"slowest_recoveries"` // of all rounds, the slowest first
	Violation *SoakViolation    `json:"violation,omitempty"`
	Rounds    []SoakRound       `json:"rounds"`
}

// SoakRound is what is kept of a round.
type SoakRound struct {
	Number     int            `json:"number"`
	Clusters   string         `json:"clusters"` // in words
	Tries      int            `json:"tries"`    // how often it was played; all else is of the last time
	AtMS       int64          `json:"at_ms"`    // since the start of the soak
	DurationMS int64          `json:"duration_ms"`
	Verdict    string         `json:"verdict"`
	Says       string         `json:"says,omitempty"` // why it is no pass
	Cut        bool           `json:"cut,omitempty"`  // the soak was ended in the middle of it
	Counts     Counts         `json:"counts"`
	Faults     map[string]int `json:"faults"` // that landed, by kind
	WorstLag   int64          `json:"worst_lag"`
	Recoveries []Recovery     `json:"recoveries,omitempty"` // the slowest ones
	Folder     string         `json:"folder,omitempty"`     // below the soak's, of a round that is kept
	Replay     string         `json:"replay,omitempty"`     // the command that plays a kept round again
	Earlier    []Try          `json:"earlier,omitempty"`    // the times before the last one, each of which proved nothing; their folders are below the soak's
}

// Recovery is how long after a fault's end every link showed itself sound again.
type Recovery struct {
	Round int    `json:"round"`
	Fault string `json:"fault"`
	Kind  string `json:"kind"`
	MS    int64  `json:"ms"`
}

// SoakTotals are rounds added up; lag and recovery are the worst one's.
type SoakTotals struct {
	Rounds       int            `json:"rounds"`
	Passed       int            `json:"passed"`
	Inconclusive int            `json:"inconclusive"`
	Acknowledged int64          `json:"acknowledged"`
	Replicated   int64          `json:"replicated"` // first copies that a target accepted, of all links
	Duplicates   int64          `json:"duplicates"`
	Resent       int64          `json:"resent"`
	Faults       map[string]int `json:"faults"` // by kind
	WorstLag     int64          `json:"worst_lag"`
	Slowest      Recovery       `json:"slowest_recovery"`
}

// SoakHour adds up the rounds that began in one hour of the soak, 1 for the first.
type SoakHour struct {
	Hour int `json:"hour"`
	SoakTotals
}

// SoakViolation is the round that ended a soak. Folder and File are below the soak's folder.
type SoakViolation struct {
	Round  int      `json:"round"`
	Judge  string   `json:"judge"`
	Says   string   `json:"says"`
	Folder string   `json:"folder"`
	File   string   `json:"file"`
	Replay []string `json:"replay"` // commands: the round's file again, and the round made anew from the seed
}
