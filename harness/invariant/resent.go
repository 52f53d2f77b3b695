package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

const resentName = "narad_remote_resent_records_total"

// Times in ms around which the wire and a counter need not agree yet.
const (
	countSettle  = 2_000   // an answer is on its way, then it is counted
	countTimeout = 125_000 // nothing is heard until the request's time is over, the longest that a remote may have
)

// resent compares what the sources counted as resent (ANS-15 to ANS-19, SND-14, DEC-01) with what taps and fakes saw. Each record of a request that
// certainly failed and may have landed was counted: a 408, a 5xx, a 2xx that commits nothing, no answer at all. What was counted beyond that is at
// most what else went wrong on the wire; that bound is judged only when nothing between source and tap could swallow a request unseen. A counter
// starts again with its process, and what it counted between its last sample and a death is lost.
func resent(s *ledger.Scenario) *finding {
	f := &finding{promise: "what was counted as resent is what failed on the wire"}
	if missing := s.Lacks(ledger.FactsName, ledger.WireName, ledger.LinksName, ledger.FaultsName); missing != "" {
		return f.lack("%s", missing)
	}
	if !s.Facts.WireRead {
		return f.lack("the wire was not read whole")
	}
	aims := map[string]map[string]bool{} // remotes by topic
	remotes := map[string]bool{}
	for i := range s.Facts.Links {
		l := &s.Facts.Links[i]
		if aims[l.TargetTopic] == nil {
			aims[l.TargetTopic] = map[string]bool{}
		}
		aims[l.TargetTopic][l.Remote], remotes[l.Remote] = true, true
	}
	if len(remotes) == 0 {
		return f.lack("no link is known")
	}
	unseen := swallowed(s)
	unknown := uncounted(s)
	deaf := pausedSources(s)
	var looked []string
	for remote := range remotes {
		total, sampled := counter(s, resentName, "remote", remote)
		if !sampled {
			f.lack("no node's metrics were read")
			continue
		}
		var least, most int64
		for i := range s.Wire {
			r := &s.Wire[i]
			if !aims[r.Topic][remote] {
				continue
			}
			most += mayCount(s, r, deaf)
			if len(aims[r.Topic]) == 1 && certainlyCounts(r) && !unknown.covers(r) {
				least += int64(len(r.Records))
			}
		}
		counted := int64(total)
		bound := fmt.Sprintf("%d to %d", least, most)
		switch {
		case counted < least:
			f.breaks("remote "+remote, "remote %s counted %d records as resent, requests with %d failed on the wire", remote, counted, least)
		case unseen != "":
			bound = fmt.Sprintf("%d at least (%s may have swallowed requests)", least, unseen)
		case counted > most:
			f.breaks("remote "+remote, "remote %s counted %d records as resent, requests with %d at most went wrong on the wire", remote, counted, most)
		}
		looked = append(looked, fmt.Sprintf("%s: %d counted, %s on the wire", remote, counted, bound))
	}
	slices.Sort(looked)
	f.looked = strings.Join(looked, "; ")
	return f
}

// certainlyCounts tells whether a request failed, whatever became of its answer, in a way that leaves open whether its records landed. One without any
// record of ours is the probe for a target's size, in which nothing can land.
func certainlyCounts(r *ledger.WireRequest) bool {
	if !slices.ContainsFunc(r.Records, func(rec ledger.WireRecord) bool { return rec.ID != "" }) {
		return false
	}
	if r.Outcome == ledger.WireAccepted && !r.Doubt || r.Outcome == ledger.WireElsewhere {
		return false
	}
	return r.Status == 0 || r.Status/100 == 2 || r.Status == http.StatusRequestTimeout || r.Status >= 500
}

// mayCount is how many records of a request may have been counted. Whatever its answer was, a source that stood still heard it too late.
func mayCount(s *ledger.Scenario, r *ledger.WireRequest, deaf []period) int64 {
	switch {
	case len(r.Records) == 0 && strings.HasSuffix(r.Path, "/produce/batch"):
		return mostRecords // it was cut before it was whole
	case slices.ContainsFunc(deaf, func(p period) bool { return p.from <= r.Done && p.to >= r.At }):
		return int64(len(r.Records))
	case r.Outcome == ledger.WireAccepted && r.Status == http.StatusAccepted && r.Sent && !r.Doubt && r.Done-r.At < slowAnswer:
		return 0
	case !s.Facts.Fake && r.Status/100 == 4 && r.Status != http.StatusRequestTimeout && r.Status != http.StatusNotFound:
		return 0 // a Narad refuses in its own shape; a script may answer as something in front does
	}
	return int64(len(r.Records))
}

// pausedSources are the times in which an answer that went out reached no sender in its time: a source stood still, or was about to while the
// answer was on its way.
func pausedSources(s *ledger.Scenario) []period {
	var out []period
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Kind == "pause" && strings.HasPrefix(f.On, "source-") {
			out = append(out, period{f.Start - countSettle, cmp.Or(f.End, 1<<62)})
		}
	}
	return out
}

// swallowed names a fault that may have kept a whole request from the tap, "" when there is none: all but those on nodes.
func swallowed(s *ledger.Scenario) string {
	for i := range s.Faults {
		f := &s.Faults[i]
		onNode := strings.HasPrefix(f.On, "source-") || strings.HasPrefix(f.On, "target-")
		if !onNode || strings.ContainsAny(f.On, "<>") { // source-2<>target is a cut
			return f.Name
		}
	}
	return ""
}

// lost is a time of which no sample has what was counted.
type lost struct {
	period
	heard bool // the sender has heard of all before it, or given up
}

// gone are such times. Held says that a fault may have kept answers back.
type gone struct {
	lost []lost
	held bool
}

func (g *gone) covers(r *ledger.WireRequest) bool {
	return slices.ContainsFunc(g.lost, func(l lost) bool {
		margin := int64(countSettle)
		if !l.heard && (g.held || r.Status == 0) {
			margin = countTimeout
		}
		return l.from-margin <= r.Done && l.to >= r.At
	})
}

// uncounted are the times before the deaths of source nodes, and after their last samples. Once all is drained nothing is on the wire any more.
func uncounted(s *ledger.Scenario) *gone {
	out := &gone{held: swallowed(s) != ""}
	for _, d := range s.Facts.Deaths {
		out.lost = append(out.lost, lost{period: period{lastCount(s, d.Node, d.Over()), d.Over()}})
	}
	drained := s.Facts.Phases.Drained > 0 && len(s.Facts.Expect.Waits) == 0
	seen := map[string]bool{}
	for i := range s.Samples {
		if n := s.Samples[i].Node; strings.HasPrefix(n, "source-") && !seen[n] {
			seen[n] = true
			out.lost = append(out.lost, lost{period{lastCount(s, n, 1<<62), 1 << 62}, drained})
		}
	}
	return out
}

// lastCount is when a node's counters were last read, at a time or before; 0 when never.
func lastCount(s *ledger.Scenario, node string, until int64) (at int64) {
	for i := range s.Samples {
		if sm := &s.Samples[i]; sm.Node == node && sm.Child == "" && !sm.Silent && sm.At <= until {
			at = max(at, sm.At)
		}
	}
	return at
}
