package ledger

// The four verdicts. Only Pass is green.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
	NotRun       = "not_run"
)

// Verdict is what one judge says of one scenario (verdicts.json).
type Verdict struct {
	Name    string   `json:"name"`
	Verdict string   `json:"verdict"`
	Says    string   `json:"says"`          // the promise in words, and what broke it
	IDs     []string `json:"ids,omitempty"` // the records, requests or places that break it, at most some dozens
}

var severity = map[string]int{Pass: 0, NotRun: 1, Inconclusive: 2, Fail: 3}

// Worst is the worst of the verdicts, in the order fail, inconclusive, not run, pass. A spelling that is none of the four counts
// as inconclusive, and so does an empty list: nothing was judged.
func Worst(verdicts ...string) string {
	if len(verdicts) == 0 {
		return Inconclusive
	}
	worst := Pass
	for _, v := range verdicts {
		if _, known := severity[v]; !known {
			v = Inconclusive
		}
		if severity[v] > severity[worst] {
			worst = v
		}
	}
	return worst
}

// WorstOf is Worst over the verdicts of vs.
func WorstOf(vs []Verdict) string {
	all := make([]string, 0, len(vs))
	for _, v := range vs {
		all = append(all, v.Verdict)
	}
	return Worst(all...)
}
