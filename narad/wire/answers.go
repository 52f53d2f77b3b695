package wire

// Action is what the sender does with an answer (seed: What each answer does).
type Action string

// The actions.
const (
	Commit      Action = "commit"       // the chunk is on the target; the next one goes
	Locate      Action = "locate"       // records before N alone, N once as base64, then block on N
	Split       Action = "split"        // halve down to the one record the target refuses
	BlockFirst  Action = "block first"  // block on the first record and check the target again
	Halve       Action = "halve"        // halve the chunk
	Block       Action = "block"        // block the lane on the one record
	CloseGate   Action = "close gate"   // the remote as a whole: nobody sends but the probe
	Stall       Action = "stall"        // this cursor alone, retried every 30 s and at once when the remote changes
	Retry       Action = "retry"        // lane backoff; the records count as resent
	SendPlain   Action = "send plain"   // again at once without compression
	LookUp      Action = "look up"      // ask the children listing which of two rows it is
	SendAlone   Action = "send alone"   // a record over the cap goes in a request of its own
	ClearItself Action = "clear itself" // holds for every state: it ends with its cause
)

// Answer is one row of the answer table. The sender's classifier tests, the fakes' catalogue and the report's coverage page
// all read this one table, so that it can be laid beside the design document row for row.
type Answer struct {
	ID     string // the row of the requirements, such as "ANS-01"
	Answer string // the answer in the document's words
	Action Action
	State  LinkState // the state that the cursor shows
}

// Answers is the whole table in the document's order (ANS-01 to ANS-24).
var Answers = []Answer{
	{"ANS-01", "202", Commit, Running},
	{"ANS-02", "400 with message N:", Locate, RejectedRecord},
	{"ANS-03", "400 without an index", Split, RejectedRecord},
	{"ANS-04", "another Narad-shaped 4xx", Split, RejectedRecord},
	{"ANS-05", "409", BlockFirst, RejectedRecord},
	{"ANS-06", "413, several records", Halve, Running},
	{"ANS-07", "413, one record", Block, RecordTooLarge},
	{"ANS-08", "401", CloseGate, AuthFailed},
	{"ANS-09", "403", Stall, Forbidden},
	{"ANS-10", "Narad's 404", Stall, TargetMissing},
	{"ANS-11", "Go's bare 404 from the batch route, the children listing answers", Stall, NoBatchProduce},
	{"ANS-12", "a bare 404, the children listing does not answer like Narad", Retry, TargetUnavailable},
	{"ANS-13", "3xx", Stall, RedirectRefused},
	{"ANS-14", "429", CloseGate, TargetThrottled},
	{"ANS-15", "408", Retry, TargetUnavailable},
	{"ANS-16", "5xx", Retry, TargetUnavailable},
	{"ANS-17", "timeout", Retry, TargetUnavailable},
	{"ANS-18", "connection refused or reset, early close, truncated answer", Retry, TargetUnavailable},
	{"ANS-19", "a non-Narad answer", Retry, TargetUnavailable},
	{"ANS-20", "a refused dial", Stall, DestinationRefused},
	{"ANS-21", "a TLS failure", CloseGate, TLSFailed},
	{"ANS-22", "415 or invalid json to a compressed chunk", SendPlain, Running},
	{"ANS-23", "202 to a record too large for a shared request", SendAlone, Running},
	{"ANS-24", "the cause is gone", ClearItself, Running},
}
