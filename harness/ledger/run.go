package ledger

// Run is run.json, the head of a run folder. Started and Ended are RFC 3339.
type Run struct {
	Seed      uint64            `json:"seed"`
	Commit    string            `json:"commit"`
	Backend   string            `json:"backend"`
	Versions  map[string]string `json:"versions"`
	Started   string            `json:"started"`
	Ended     string            `json:"ended"`
	Verdict   string            `json:"verdict"`
	Scenarios []ScenarioRun     `json:"scenarios"`
	Matrix    *Matrix           `json:"matrix,omitempty"` // when cells of it were among the files
}

// Matrix is the matrix of the sender as the scenario files plan it: its axes, the combinations that have a scenario, whether or not this
// run took it, and those that are left out with a reason. What is in neither is an empty cell.
type Matrix struct {
	Axes     []Axis       `json:"axes"`
	Planned  []MatrixCell `json:"planned"`
	Excepted []MatrixCell `json:"excepted,omitempty"`
}

// Axis is a variable of the matrix with all its values.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// MatrixCell is one combination, the value by variable, with its scenario or the reason why it has none.
type MatrixCell struct {
	Cell     map[string]string `json:"cell"`
	Scenario string            `json:"scenario,omitempty"`
	Reason   string            `json:"reason,omitempty"`
}

// ScenarioRun is one scenario of a run. Folder is its place below the run folder.
type ScenarioRun struct {
	Name       string            `json:"name"`
	File       string            `json:"file"`
	Folder     string            `json:"folder"`
	Backend    string            `json:"backend"`
	Seed       uint64            `json:"seed"`
	Covers     []string          `json:"covers"`
	Cell       map[string]string `json:"cell,omitempty"` // of a scenario that a matrix made: the value by variable
	Verdict    string            `json:"verdict"`
	Says       string            `json:"says,omitempty"`    // why it did not run, or what stopped it
	Tries      int               `json:"tries,omitempty"`   // how often it was played, 0 when it was not; all else is of the last time
	Earlier    []Try             `json:"earlier,omitempty"` // the times before the last one, each of which proved nothing
	DurationMS int64             `json:"duration_ms"`
	Counts     Counts            `json:"counts"`
	Faults     []Fault           `json:"faults"`
	Invariants []Verdict         `json:"invariants"` // without the ids: those are in verdicts.json
}

// Try is one time that a scenario was played and proved nothing.
type Try struct {
	Folder     string `json:"folder"`
	Verdict    string `json:"verdict"`
	Says       string `json:"says"` // why it proved nothing
	DurationMS int64  `json:"duration_ms"`
}

// TryOf is r as an earlier try.
func TryOf(r *ScenarioRun) Try {
	t := Try{Folder: r.Folder, Verdict: r.Verdict, Says: r.Says, DurationMS: r.DurationMS}
	for _, v := range r.Invariants {
		if t.Says == "" && v.Verdict == Inconclusive {
			t.Says = v.Name + ": " + v.Says
		}
	}
	return t
}

// Counts are a scenario's totals, in records.
type Counts struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"`
	Refused      int64 `json:"refused"`
	OnWire       int64 `json:"on_wire"`    // copies in accepted requests
	OnTarget     int64 `json:"on_target"`  // records in the target's logs
	Duplicates   int64 `json:"duplicates"` // copies in accepted requests beyond the first
	Resent       int64 `json:"resent"`     // what the nodes counted, killed ones up to their last sample
	Skipped      int64 `json:"skipped"`
	Dropped      int64 `json:"dropped"`
	Missing      int64 `json:"missing"`   // records that the judge of gaps names
	Reordered    int64 `json:"reordered"` // records that the judge of order names
	Changed      int64 `json:"changed"`   // records that the judge of bytes names
}
