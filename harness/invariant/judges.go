package invariant

import (
	"fmt"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// Names of the judges, as verdicts, reports and a scenario's relax use them.
const (
	NameGap        = "no gap"
	NameOrder      = "order per key"
	NameBytes      = "bytes equal"
	NameDuplicates = "duplicates explained"
	NameResent     = "resends counted"
	NameStates     = "every state cleared"
	NameAudit      = "audit trail"
	NameSecret     = "no secret anywhere"
	NameDrained    = "drained"
	NameMetrics    = "metrics as expected"
	NameLooks      = "looks as expected"
	NameLogs       = "log lines as expected"
	NameAsked      = "requests as expected"
	NameProduces   = "produces answered as expected"
	NameSteps      = "steps answered as expected"
	NamePaused     = "paused links are quiet"
	NameAstray     = "nothing goes astray"
	NameWire       = "requests as promised"
	NameGate       = "gate waits kept"
	NameLeft       = "nothing left"
	NameDispatch   = "dispatched in order"
	NameProof      = "run proved something"
)

// Judgement is what all judges say of a scenario, with its totals.
type Judgement struct {
	Verdicts []ledger.Verdict
	Counts   ledger.Counts
}

type judge struct {
	name  string
	judge func(*ledger.Scenario) *finding
}

// Judge asks every judge, the one of the run itself first. Secrets are the rig's; they are searched for and never shown. A
// relaxed judge says not run, with the scenario's reason; only the judge of the run itself cannot be relaxed.
func Judge(s *ledger.Scenario, secrets []string) Judgement {
	judges := []judge{
		{NameProof, proof},
		{NameGap, noGap},
		{NameOrder, order},
		{NameBytes, bytesEqual},
		{NameDuplicates, duplicates},
		{NameResent, resent},
		{NameDrained, drained},
		{NameStates, states},
		{NameMetrics, metrics},
		{NameLooks, looks},
		{NameLogs, logLines},
		{NameAsked, asked},
		{NameProduces, produces},
		{NameSteps, steps},
		{NameAudit, audit},
		{NamePaused, paused},
		{NameAstray, astray},
		{NameWire, requests},
		{NameGate, gates},
		{NameLeft, left},
		{NameDispatch, dispatched},
		{NameSecret, func(s *ledger.Scenario) *finding { return noSecret(s, secrets) }},
	}
	j := Judgement{Counts: count(s)}
	for _, one := range judges {
		if reason, relaxed := relaxedFor(s, one.name); relaxed && one.name != NameProof {
			j.Verdicts = append(j.Verdicts, ledger.Verdict{Name: one.name, Verdict: ledger.NotRun, Says: "relaxed: " + reason})
			continue
		}
		v, broken := safely(s, one)
		if s.Facts.Aborted && v.Verdict == ledger.Fail && one.name != NameSecret && one.name != NameLeft {
			v.Verdict, broken = ledger.Inconclusive, 0
			v.Says = "the run was ended early, so what is missing proves nothing: " + v.Says
		}
		j.Verdicts = append(j.Verdicts, v)
		switch one.name {
		case NameGap:
			j.Counts.Missing = broken
		case NameOrder:
			j.Counts.Reordered = broken
		case NameBytes:
			j.Counts.Changed = broken
		}
	}
	if words := s.Facts.Expect.Inconclusive; words != "" {
		j.expectNothing(words)
	}
	return j
}

// expectNothing turns the judgement of a run that is meant to prove nothing round (BR-31): the judge of the run itself must be
// inconclusive for the reason that the scenario names. A judge that says fail still does, and one that lacks data is not asked.
func (j *Judgement) expectNothing(words string) {
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		switch {
		case v.Name != NameProof:
			if v.Verdict == ledger.Inconclusive {
				v.Verdict, v.Says = ledger.NotRun, "the run is meant to prove nothing: "+v.Says
			}
		case v.Verdict == ledger.Inconclusive && strings.Contains(v.Says, words):
			v.Verdict, v.Says = ledger.Pass, "inconclusive, as the scenario expects: "+v.Says
		default:
			v.Says = fmt.Sprintf("the run is meant to be inconclusive with %q and is %s: %s", words, v.Verdict, v.Says)
			v.Verdict = ledger.Fail
		}
	}
}

// Verdict folds the judgement into one word. A relaxed judge does not colour it.
func (j Judgement) Verdict() string {
	var all []string
	for _, v := range j.Verdicts {
		if v.Verdict != ledger.NotRun {
			all = append(all, v.Verdict)
		}
	}
	return ledger.Worst(all...)
}

func relaxedFor(s *ledger.Scenario, name string) (string, bool) {
	for _, r := range s.Facts.Relax {
		if r.Judge == name {
			return r.Reason, true
		}
	}
	return "", false
}

// safely turns a judge that panics into one that is inconclusive.
func safely(s *ledger.Scenario, j judge) (v ledger.Verdict, broken int64) {
	defer func() {
		if p := recover(); p != nil {
			v = ledger.Verdict{Name: j.name, Verdict: ledger.Inconclusive, Says: fmt.Sprintf("the judge itself broke: %v", p)}
			broken = 0
		}
	}()
	f := j.judge(s)
	return f.verdict(j.name), f.broken
}

// Limits of what a verdict names.
const (
	maxIDs  = 50
	maxSays = 8
)

// finding is what a judge found: what breaks the promise and what it could not look at.
type finding struct {
	promise string // the guarantee, in words
	looked  string // what was put to the test, for a pass
	ids     []string
	says    []string
	lacks   []string
	broken  int64
}

// breaks adds a violation; id names a record, a request or a place.
func (f *finding) breaks(id, format string, args ...any) {
	f.broken++
	if len(f.ids) < maxIDs && !slices.Contains(f.ids, id) {
		f.ids = append(f.ids, id)
	}
	if len(f.says) < maxSays {
		f.says = append(f.says, fmt.Sprintf(format, args...))
	}
}

// lack adds a reason why the promise cannot be judged whole.
func (f *finding) lack(format string, args ...any) *finding {
	f.lacks = append(f.lacks, fmt.Sprintf(format, args...))
	return f
}

func (f *finding) verdict(name string) ledger.Verdict {
	v := ledger.Verdict{Name: name, Verdict: ledger.Pass, IDs: f.ids}
	switch {
	case f.broken > 0:
		v.Verdict = ledger.Fail
		v.Says = fmt.Sprintf("%s: broken %d times: %s", f.promise, f.broken, strings.Join(f.says, "; "))
	case len(f.lacks) > 0:
		v.Verdict = ledger.Inconclusive
		v.Says = fmt.Sprintf("%s: cannot be said: %s", f.promise, strings.Join(f.lacks[:min(len(f.lacks), maxSays)], "; "))
	default:
		v.Says = f.promise + ": " + f.looked
	}
	return v
}
