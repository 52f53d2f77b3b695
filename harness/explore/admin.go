package explore

import (
	"fmt"
	"slices"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// gateShut is how long after a password is right again a link may still stand: a 401 closes the gate for 30 s (GAT-02). A fault in that time would
// meet no traffic.
const gateShut = 31 * second

// admin adds what an admin does on the way, while every node is there and the link is sound.
func (g *generator) admin(d dice, at scenarios.Duration, fake bool) scenarios.Duration {
	kinds := []string{"attach again", "pause", "pause", "limits"}
	if !fake {
		kinds = append(kinds, "rotate", "password") // a fake has no users
	}
	step := func(s scenarios.Step) { g.s.Steps = append(g.s.Steps, s) }
	child := g.s.Links[0].Child
	switch pick(d, kinds...) {
	case "rotate":
		step(scenarios.Step{At: at, Action: "rotate_password", Remote: remote, Expect: 200})
	case "limits":
		l := scenarios.Limits{MaxInFlight: d.between(1, 8)}
		if d.percent(50) {
			l.Compression = pick(d, "none", "zstd")
		}
		step(scenarios.Step{At: at, Action: "set_limits", Remote: remote, Limits: &l, Expect: 200})
	case "password":
		back := at + d.tenths(20, 60)
		step(scenarios.Step{At: at, Action: "target_password", Remote: remote, To: "other", Expect: 204})
		step(scenarios.Step{At: back, Action: "target_password", Remote: remote, To: "recorded", Expect: 204})
		return back + gateShut
	case "pause":
		back := g.checkAt(at + d.tenths(30, 100))
		step(scenarios.Step{At: at, Action: "pause", Link: child, Expect: 200})
		step(scenarios.Step{At: back, Action: "resume", Link: child, Expect: 200})
		return back + 2*second
	default:
		back := g.checkAt(at + d.tenths(10, 40))
		step(scenarios.Step{At: at, Action: "detach", Link: child, Force: true, Expect: 204})
		step(scenarios.Step{At: back, Action: "attach", Link: child, Expect: 201})
		return back + 2*second
	}
	return at + 2*second
}

// poison makes the target a fake that refuses one record for good, until an admin has skipped it on every link that carries it.
func (g *generator) poison() {
	d := g.dice("poison record")
	id := ledger.NewID(1<<40 | uint64(d.between(5, 60))) // a record of the first load (harness/workload)
	g.s.Target.Fake = &scenarios.Fake{Steps: []scenarios.FakeStep{{
		Name: "poison", Answer: pick(d, "400-index", "400", "413", "422"), Always: true, // a 409 blocks the first of its chunk instead
		When: scenarios.FakeWhen{Route: "produce", Record: id},
	}}}
	at := max(g.first, 10*second)
	for i := range g.s.Links {
		l := &g.s.Links[i]
		l.From, l.Attach = "earliest", "before" // each link that carries the record meets it
		if l.Parent == firstTopic {
			g.s.Steps = append(g.s.Steps, scenarios.Step{At: at, Action: "skip", Link: l.Child, Expect: 200})
		}
	}
	g.s.Steps = slices.DeleteFunc(g.s.Steps, func(st scenarios.Step) bool { return st.Action == "attach" })
}

// script makes the target a fake that gives bad answers and then good ones. Nothing here needs an admin to go on: answers that block a lane on a
// record (a 400, 409, 412, 413, and a 415 to what was not compressed) are left out.
func (g *generator) script() {
	d := g.dice("script")
	f := &scenarios.Fake{}
	stalled := false
	for i := range d.between(1, 4) {
		answer := pick(d, soft...)
		if d.percent(25) && !stalled {
			answer = pick(d, hard...)
		}
		if answer == "cut-upload" && len(g.s.Steps) > 0 {
			answer = "reset" // cut-upload would meet the check of an admin's step as well
		}
		st := scenarios.FakeStep{
			Name: fmt.Sprintf("%d %s", i+1, answer), Answer: answer, Times: d.between(1, 4), With: with(d, answer),
			When: scenarios.FakeWhen{Route: "produce", Record: anyRecord, Nth: d.between(4, 14)},
		}
		if answer == "cut-upload" {
			st.When.Record = "" // the upload is cut before a record can be read
		}
		if slices.Contains(hard, answer) {
			st.Times, stalled = d.between(1, 2), true // one stall of half a minute in a schedule is enough to pay for
		}
		if st.With.RetryAfter != "" {
			st.Times = min(st.Times, 2)
		}
		f.Steps = append(f.Steps, st)
		g.end += waits(&st) // the load goes on until the script is used up
	}
	g.s.Target.Fake = f
}

// anyRecord is in every record of the load, so that the empty batches of checks and probes pass.
const anyRecord = "nrd-"

// soft answers make the sender back off for seconds, hard ones stall the link or close the gate for half a minute.
var (
	soft = []string{
		"202", "500", "502", "503", "429", "408", "hang", "stored-then-503", "stored-then-hang", "early-close", "reset", "truncated", "cut-upload",
		"stored-then-cut", "html", "empty", "200", "wrong-count", "wrong-type", "huge", "wrong-request-id",
	}
	hard = []string{"401", "403", "narad-404", "bare-404", "302"}
)

// waits is about how long a step holds the link back, all its times together.
func waits(st *scenarios.FakeStep) scenarios.Duration {
	each := 2*second + st.With.Delay
	switch {
	case slices.Contains(hard, st.Answer):
		each = 31 * second
	case st.With.RetryAfter == "600":
		each = 60 * second // the most that a sender waits
	case st.With.RetryAfter == "15" || st.With.RetryAfter == "20":
		each = 20 * second
	}
	return each * scenarios.Duration(st.Times)
}

func with(d dice, answer string) scenarios.FakeWith {
	var w scenarios.FakeWith
	switch answer {
	case "202":
		w.Delay = d.millis(200, 4000) // late, and good
		return w
	case "502":
		w.Status = pick(d, 0, 504, 507, 599)
	case "200":
		w.Status = pick(d, 0, 201, 204, 206)
	case "302":
		w.Status = pick(d, 0, 301, 307, 308)
	case "429":
		w.RetryAfter = pick(d, "", "1", "7", "20", "600", "-3", "soon", "date+5s", "date-1h")
	case "truncated":
		w.Bytes = scenarios.Size(d.between(1, 10))
	case "cut-upload":
		w.Bytes = scenarios.Size(d.between(1, 200))
	case "huge":
		w.Bytes = 256 << 10
	}
	if answer == "502" || answer == "503" {
		w.RetryAfter = pick(d, "", "", "3", "15")
	}
	if d.percent(25) && answer != "hang" && answer != "stored-then-hang" {
		w.Delay = d.millis(100, 3000)
	}
	return w
}
