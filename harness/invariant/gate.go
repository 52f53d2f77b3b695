package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"narad.example/harness/ledger"
)

// What a closed gate waits at least, in ms (GAT-02, DEC-03, DEC-44), and what the clocks of tap and run may round away.
const (
	leastWait   = 250
	authWait    = 30_000
	longestWait = 60_000
	tripAfter   = 3
	rounding    = 5
)

// gates is GAT-01 to GAT-03, GAT-05, GAT-06 and ANS-14 on the wire. After a 401 nothing begins for 30 s, after a 429 for its Retry-After,
// after three transient failures in a row for 250 ms; then one probe at a time, a check and a chunk at most, 250 ms apart. A chunk that failed
// transiently goes again after 250 ms, gate or not. It judges a source of one node, since the wire does not tell nodes apart, and leaves
// out the time of faults of the link or of the source, and of a changed remote, which begins a fresh gate (DEC-27).
func gates(s *ledger.Scenario) *finding {
	f := &finding{promise: "closed gates and backoffs are waited for"}
	if missing := s.Lacks(ledger.FactsName, ledger.WireName, ledger.OperationsName, ledger.FaultsName); missing != "" {
		return f.lack("%s", missing)
	}
	if s.Facts.Sources != 1 {
		f.looked = "not judged: only one node's requests can be told apart"
		return f
	}
	grace := int64(1000) // of a request that was sent before the gate closed
	if s.Facts.Virtual {
		grace = 50
	}
	closings, waits := 0, 0
	for remote, topics := range topicsOf(s) {
		g := &gateWatch{f: f, remote: remote, grace: grace, disturbed: disturbances(s)}
		for _, r := range s.Wire {
			if topics[r.Topic] && !byAdmin(s, &r) {
				g.answers = append(g.answers, r)
			}
		}
		closings += g.judge()
		waits += g.lanes()
	}
	f.looked = fmt.Sprintf("%d closings of a gate, %d chunks that went again", closings, waits)
	return f
}

func topicsOf(s *ledger.Scenario) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, l := range s.Facts.Links {
		if out[l.Remote] == nil {
			out[l.Remote] = map[string]bool{}
		}
		out[l.Remote][l.TargetTopic] = true
	}
	return out
}

// byAdmin tells whether a request may be one of the checks that an admin asked for, which pass no gate (DEC-48).
func byAdmin(s *ledger.Scenario, r *ledger.WireRequest) bool {
	if r.Produces() {
		return false
	}
	return slices.ContainsFunc(s.Operations, func(o ledger.Operation) bool {
		return o.Kind == ledger.KindAdmin && strings.HasPrefix(o.Action, "remote") && r.Done >= o.At && r.At <= o.Done
	})
}

// period is a time in ms, both ends included.
type period struct{ from, to int64 }

// disturbances are the times of which the wire does not tell what the gate learned.
func disturbances(s *ledger.Scenario) []period {
	const settle = 35_000 // a request that a fault holds may be out for the whole of its time
	var out []period
	for i := range s.Faults {
		if f := &s.Faults[i]; !strings.HasPrefix(f.On, "target-") {
			out = append(out, period{f.Start, cmp.Or(f.End, 1<<62) + settle})
		}
	}
	for _, d := range s.Facts.Deaths {
		out = append(out, period{d.At, d.Over() + settle})
	}
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Kind == ledger.KindAdmin && slices.Contains([]string{"remote.update", "remote.create", "remote.delete", "remote.reencrypt"}, o.Action) {
			out = append(out, period{o.At, o.Done + 1000})
		}
	}
	return out
}

// gateWatch follows the gate of one remote.
type gateWatch struct {
	f         *finding
	remote    string
	grace     int64
	disturbed []period
	answers   []ledger.WireRequest // in their order
}

func (g *gateWatch) calm(from, to int64) bool {
	return !slices.ContainsFunc(g.disturbed, func(p period) bool { return p.from <= to && p.to >= from })
}

// transient tells whether an answer is certainly one transient failure.
func transient(r *ledger.WireRequest) bool {
	return r.Sent && (r.Status == http.StatusRequestTimeout || r.Status >= 500)
}

// closes is how long an answer closes the gate at least, 0 when not at all by itself.
func closes(r *ledger.WireRequest) int64 {
	switch {
	case !r.Sent:
		return 0
	case r.Status == http.StatusUnauthorized:
		return authWait
	case r.Status == http.StatusTooManyRequests:
		if n, err := strconv.Atoi(r.RetryAfter); err == nil && n > 0 {
			return min(int64(n)*1000, longestWait)
		}
		return leastWait
	}
	return 0
}

func (g *gateWatch) judge() (closings int) {
	byStart := slices.Clone(g.answers)
	slices.SortStableFunc(byStart, func(a, b ledger.WireRequest) int { return cmp.Compare(a.At, b.At) })
	over := int64(-1)
	for i := range g.answers {
		r := &g.answers[i]
		wait := closes(r)
		if wait == 0 && g.trips(i) {
			wait = leastWait
		}
		if wait == 0 || r.Done <= over || r.Done-r.At > g.grace || !g.calm(r.At-g.grace, r.Done+wait) {
			continue
		}
		closings++
		over = g.walk(byStart, r, wait)
	}
	return closings
}

// trips tells whether answer i is certainly the third transient failure in a row, in whatever order the sender read answers of one moment.
func (g *gateWatch) trips(i int) bool {
	first := i - tripAfter + 1
	if first < 0 {
		return false
	}
	for _, r := range g.answers[first : i+1] {
		if !transient(&r) {
			return false
		}
	}
	from, to := g.answers[first].Done-g.grace, g.answers[i].Done+g.grace
	return !slices.ContainsFunc(g.answers, func(r ledger.WireRequest) bool {
		return !transient(&r) && r.Done >= from && r.At <= to
	})
}

// walk follows the closed gate from the answer that closed it to where it may have opened, and returns that time.
func (g *gateWatch) walk(byStart []ledger.WireRequest, closing *ledger.WireRequest, wait int64) int64 {
	last, why := closing, fmt.Sprintf("request %d was answered %d", closing.Seq, closing.Status)
	probing := false
	for i := range byStart {
		r := &byStart[i]
		if r.At <= closing.Done+g.grace && r.At < closing.Done+wait {
			continue // sent before it closed, as far as the wire can tell
		}
		if !g.calm(last.Done, r.At) {
			return r.At
		}
		if probing && r.At < last.Done-rounding && last.Sent {
			g.f.breaks(r.RequestID, "remote %s: request %d began at %d ms beside request %d, which was the probe until %d ms", g.remote, r.Seq, r.At, last.Seq, last.Done)
		}
		follows := probing && followsProbe(last, r)
		if !follows && r.At < last.Done+wait-rounding {
			g.f.breaks(r.RequestID, "remote %s: request %d began %d ms after %s, which closes the gate for %d ms at least", g.remote, r.Seq, r.At-last.Done, why, wait)
		}
		probing, last = true, r
		why = fmt.Sprintf("request %d failed as the probe", r.Seq)
		switch fixed := closes(r); {
		case fixed > 0:
			wait = fixed
		case transient(r):
			wait = leastWait
		default:
			return r.Done // it may have opened
		}
	}
	return last.Done
}

// followsProbe tells whether r belongs to the probe that last began: the chunk behind a check that failed transiently (RUN-07).
func followsProbe(last, r *ledger.WireRequest) bool {
	return !last.Produces() && transient(last) && r.Produces()
}

// lanes judges that a chunk which failed transiently does not go again at once (GAT-06): its first record begins no request for 250 ms.
func (g *gateWatch) lanes() (looked int) {
	failed := map[string]*ledger.WireRequest{}
	byStart := slices.Clone(g.answers)
	slices.SortStableFunc(byStart, func(a, b ledger.WireRequest) int { return cmp.Compare(a.At, b.At) })
	for i := range byStart {
		r := &byStart[i]
		if !r.Produces() {
			continue
		}
		first := r.Topic + " " + r.Records[0].ID // two links may send the same record
		if before := failed[first]; before != nil && r.At >= before.Done && g.calm(before.Done, r.At) {
			looked++
			if r.At < before.Done+leastWait-rounding {
				g.f.breaks(r.RequestID, "remote %s: request %d came %d ms after request %d with the same first record was answered %d", g.remote, r.Seq, r.At-before.Done, before.Seq, before.Status)
			}
		}
		delete(failed, first)
		if transient(r) && r.Records[0].ID != "" {
			failed[first] = r
		}
	}
	return looked
}
