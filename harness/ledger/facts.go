package ledger

// Facts is facts.json: what the judges must know of a scenario beside its streams. The harness writes it last, and once early
// so that an aborted run has one.
type Facts struct {
	Scenario    string   `json:"scenario"`
	Epoch       int64    `json:"epoch_ms"` // Unix milliseconds from which all times of the folder count
	Backend     string   `json:"backend"`
	Virtual     bool     `json:"virtual"`                // virtual time: short states can be seen, clocks are exact
	Fake        bool     `json:"fake"`                   // the target is a scripted fake: it has no log to read back
	Sources     int      `json:"sources,omitempty"`      // nodes of the source
	TargetNodes int      `json:"target_nodes,omitempty"` // nodes of the target, none of a fake
	Parents     []string `json:"parents,omitempty"`      // topics that were read back whole into parent.jsonl
	Targets     []string `json:"targets,omitempty"`      // topics that were read back whole into target.jsonl
	WireRead    bool     `json:"wire_read"`              // wire.jsonl holds all that the tap saw
	LogsRead    bool     `json:"logs_read"`              // audit.jsonl and nodes/ hold the logs of every node
	LeftRead    bool     `json:"left_read"`              // somebody looked for what the run left behind
	Left        []string `json:"left,omitempty"`         // what of it was still there, in words
	Links       []Link   `json:"links"`                  // one for each attach epoch
	Phases      Phases   `json:"phases"`
	Waiting     []string `json:"waiting,omitempty"` // what had not drained at the deadline, in words
	Late        []Late   `json:"late,omitempty"`    // in the order of their times
	Healed      bool     `json:"healed"`            // every fault was taken back and that was verified
	Deaths      []Death  `json:"deaths,omitempty"`
	Steps       []Step   `json:"steps,omitempty"` // a fake's script and how often each step answered
	Drops       []Drop   `json:"drops,omitempty"`
	Looks       []Look   `json:"looks,omitempty"`
	Expect      Expect   `json:"expect"`
	Relax       []Relax  `json:"relax,omitempty"`
	Aborted     bool     `json:"aborted,omitempty"` // the run was ended early: what is missing proves nothing
	Trouble     []string `json:"trouble,omitempty"` // what went wrong in the harness itself: no verdict on the product
}

// Link is one attach epoch of a remote child.
type Link struct {
	Parent       string             `json:"parent"`
	Child        string             `json:"child"`
	Remote       string             `json:"remote"`
	TargetTopic  string             `json:"target_topic"`
	TargetID     string             `json:"target_id,omitempty"` // of the present incarnation of the target topic
	Epoch        string             `json:"epoch"`
	Lanes        int                `json:"lanes"`
	DelayMS      int64              `json:"delay_ms,omitempty"`
	StartOffsets []int64            `json:"start_offsets"` // by parent partition; a partition beyond the list starts at 0
	Skip         map[string][]int64 `json:"skip,omitempty"`
	AttachedAt   int64              `json:"attached_ms"`
	DetachedAt   int64              `json:"detached_ms,omitempty"` // 0 while attached
	NextOffsets  map[int]int64      `json:"next_offsets,omitempty"`
}

// Start is the offset from which partition p is owed.
func (l *Link) Start(p int) int64 {
	if p < len(l.StartOffsets) {
		return l.StartOffsets[p]
	}
	return 0
}

// Name is "parent/child".
func (l *Link) Name() string { return l.Parent + "/" + l.Child }

// Phases are the turning points of a run; 0 is "never reached".
type Phases struct {
	LoadStart int64 `json:"load_start_ms"`
	LoadEnd   int64 `json:"load_end_ms"`
	Healed    int64 `json:"healed_ms"`
	Drained   int64 `json:"drained_ms"`
	Deadline  int64 `json:"deadline_ms"` // when drained was owed
	End       int64 `json:"end_ms"`
}

// Late is a delay of a real run's timeline: a fault took longer than planned, and what was planned after it waited. From At on, in milliseconds
// of the load, everything came By milliseconds later than planned, until the next one.
type Late struct {
	At  int64  `json:"at_ms"`
	By  int64  `json:"by_ms"`
	Why string `json:"why"`
}

// Planned is when what the scenario plans for a time of the load really was, in milliseconds of the load.
func (f *Facts) Planned(at int64) int64 {
	by := int64(0)
	for _, l := range f.Late {
		if l.At <= at {
			by = l.By
		}
	}
	return at + by
}

// Death is one end of a source node's process: after At, which is right before it was asked for.
type Death struct {
	Node       string `json:"node"`
	At         int64  `json:"at_ms"`
	Ended      int64  `json:"ended_ms,omitempty"` // by then it was over; 0 when that is not known
	Asked      bool   `json:"asked"`              // the harness did it
	Graceful   bool   `json:"graceful,omitempty"` // it was told to end, so that its cursors keep what they know (DEC-09)
	Cursors    int    `json:"cursors"`            // cursors that it ran (of all links)
	LastSample int64  `json:"last_sample"`        // when its counters were last read
}

// Over is a time by which the node had ended. A loaded engine takes seconds to kill, in which the node goes on sending and counting.
func (d *Death) Over() int64 { return max(d.At, d.Ended) }

// Step is one step of a fake's script with its use.
type Step struct {
	Name string `json:"name"`
	Want int    `json:"want"` // answers it must give; 0 asks for at least one
	Used int    `json:"used"`
}

// Drop is a range of offsets that a cursor logged as dropped behind retention, both ends included.
type Drop struct {
	Parent    string `json:"parent"`
	Child     string `json:"child"`
	Partition int    `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Records   int64  `json:"records,omitempty"` // how many of them it says were lost; fewer when lanes had shipped some (DEC-29)
}

// Look is what one member of a link, or one metric of the source, was at a moment that a scenario named.
type Look struct {
	At     int64  `json:"at_ms"`
	Step   string `json:"step"` // "look at 20s"
	Child  string `json:"child"`
	Member string `json:"member"`
	Want   string `json:"want"`          // a comparison, or words
	Got    string `json:"got,omitempty"` // "" when nobody could be asked
}

// Expect is what the scenario expects beside what is always owed.
type Expect struct {
	States  map[string][]string `json:"states,omitempty"`  // by child, in this order, others may come between
	Never   map[string][]string `json:"never,omitempty"`   // by child
	Metrics map[string]string   `json:"metrics,omitempty"` // by metric name: a comparison with the sum over the nodes at the end
	Waits   []string            `json:"waits,omitempty"`   // children that are meant to end paused or blocked

	Logs     []LogLines `json:"logs,omitempty"`
	Requests []Asked    `json:"requests,omitempty"`
	Produces []Produced `json:"produces,omitempty"`

	Shapes       []string `json:"shapes,omitempty"`       // of payloads, of which the load has dozens
	Inconclusive string   `json:"inconclusive,omitempty"` // the run must prove nothing, and these words say why
}

// LogLines asks how many lines of the nodes' logs have a message, a level and members. Times are milliseconds of the load; Until 0 is the end.
type LogLines struct {
	Message string            `json:"message"`
	Level   string            `json:"level,omitempty"` // in small letters
	On      string            `json:"on,omitempty"`
	With    map[string]string `json:"with,omitempty"`
	From    int64             `json:"from_ms,omitempty"`
	Until   int64             `json:"until_ms,omitempty"`
	Is      string            `json:"is"`
}

// Asked asks how many requests of a kind began at the tap or the fake. Times are as in LogLines.
type Asked struct {
	Route   string `json:"route"` // chunk, probe, children, topic, users, any
	Status  int    `json:"status,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Answer  string `json:"answer,omitempty"` // whole or part: what of it went out
	Topic   string `json:"topic,omitempty"`
	Records string `json:"records,omitempty"` // a comparison with how many records it has
	Bytes   string `json:"bytes,omitempty"`   // a comparison with the bytes of its body, as sent
	From    int64  `json:"from_ms,omitempty"`
	Until   int64  `json:"until_ms,omitempty"`
	Is      string `json:"is"`
}

// Produced asks how many records got an answer with this status to their produce, through that node or any. Times are as in LogLines, of the
// moment in which the record was offered.
type Produced struct {
	Status int    `json:"status"`
	On     string `json:"on,omitempty"`
	From   int64  `json:"from_ms,omitempty"`
	Until  int64  `json:"until_ms,omitempty"`
	Is     string `json:"is"`
}

// Relax takes one judge out, with the reason.
type Relax struct {
	Judge  string `json:"judge"`
	Reason string `json:"reason"`
}
