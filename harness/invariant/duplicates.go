package invariant

import (
	"fmt"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// slabPerLane bounds a slab: 500 records for each lane (SND-03). A crash repeats at most two slabs of a cursor (DEC-34).
const slabPerLane = 500

// stopWait is the time in ms after which a graceful stop cuts what is on the wire (DEC-09).
const stopWait = 5_000

// duplicates is HAR-09, on the wire and for each remote: copies in accepted requests beyond the occurrences in the parent are at most
// the records that the nodes counted as resent, plus two slabs for each cursor that was killed. A graceful stop keeps positions and marks, so that
// only what it cut on the wire goes again (DEC-09, CUR-07). A later attach that starts lower owes
// its range again.
func duplicates(s *ledger.Scenario) *finding {
	f := &finding{promise: "what arrived twice was counted as resent, or a cursor was killed"}
	if missing := s.Lacks(ledger.FactsName, ledger.ParentName, ledger.WireName, ledger.LinksName); missing != "" {
		return f.lack("%s", missing)
	}
	if len(accepted(s)) == 0 {
		return f.lack("no record was accepted on the wire")
	}
	remotes := map[string]bool{}
	for _, l := range s.Facts.Links {
		remotes[l.Remote] = true
	}
	var looked []string
	for remote := range remotes {
		surplus := surplusOf(s, remote)
		resent, sampled := counter(s, "narad_remote_resent_records_total", "remote", remote)
		allowed := int64(resent) + afterDeaths(s, remote)
		if !sampled {
			f.lack("no node's metrics were read")
		}
		if surplus > allowed {
			f.breaks("remote "+remote, "%d copies too many through remote %s, %d are explained (%d resent)", surplus, remote, allowed, int64(resent))
		}
		repeats(s, f, remote)
		looked = append(looked, fmt.Sprintf("%s: %d copies too many, %d explained", remote, surplus, allowed))
	}
	if len(remotes) == 0 {
		f.lack("no link is known")
	}
	f.looked = strings.Join(looked, "; ")
	return f
}

// surplusOf counts, record by record, copies on the wire beyond those that the parent and its epochs owe. By record, so that one
// that is missing does not hide one that is there twice.
func surplusOf(s *ledger.Scenario, remote string) int64 {
	var surplus int64
	topics := map[string][]*ledger.Link{}
	for i := range s.Facts.Links {
		if l := &s.Facts.Links[i]; l.Remote == remote {
			topics[l.TargetTopic] = append(topics[l.TargetTopic], l)
		}
	}
	for topic, epochs := range topics {
		owed := map[string]int64{}
		for _, l := range epochs {
			for _, r := range s.Parent {
				if r.Topic == l.Parent && r.Offset >= l.Start(r.Partition) {
					owed[r.ID]++
				}
			}
		}
		copies := map[string]int64{}
		for _, r := range accepted(s) {
			if r.Topic == topic {
				for _, rec := range r.Records {
					copies[rec.ID]++
				}
			}
		}
		for id, n := range copies {
			surplus += max(0, n-owed[id])
		}
	}
	return surplus
}

func afterDeaths(s *ledger.Scenario, remote string) int64 {
	lanes := 1
	for _, l := range s.Facts.Links {
		if l.Remote == remote {
			lanes = max(lanes, l.Lanes)
		}
	}
	var allowed int64
	for _, d := range s.Facts.Deaths {
		if d.Graceful {
			allowed += cutByStop(s, d)
			continue
		}
		allowed += 2 * int64(d.Cursors) * int64(lanes) * slabPerLane
		if d.Asked {
			continue // its counters were read just before
		}
		for _, r := range accepted(s) {
			if r.Done >= d.LastSample && r.At <= d.At {
				allowed += int64(len(r.Records))
			}
		}
	}
	return allowed
}

// cutByStop is how many records were on the wire in doubt since the counters were read before a graceful stop: what it cut, and what failed in it.
func cutByStop(s *ledger.Scenario, d ledger.Death) (records int64) {
	unsure := unsureTimes(s)
	for _, r := range accepted(s) {
		if r.Done >= d.LastSample && r.At <= max(d.At+stopWait, d.Over()) && anyInDoubt([]ledger.WireRequest{r}, unsure) {
			records += int64(len(r.Records))
		}
	}
	return records
}

// counter sums a counter over all nodes and all series in which label has value ("" for any series), across restarts: a value below the one
// before counts from zero again, and so does the first one behind a death. It says whether any node's metrics were read at all.
func counter(s *ledger.Scenario, name, label, value string) (total float64, sampled bool) {
	type reading struct {
		at    int64
		value float64
	}
	last := map[string]reading{}
	for _, sm := range s.Samples {
		if sm.Child != "" || sm.Silent {
			continue
		}
		sampled = sampled || len(sm.Metrics) > 0
		for series, v := range sm.Metrics {
			if !isSeries(series, name, label, value) {
				continue
			}
			key := sm.Node + " " + series
			before := last[key]
			if v < before.value || died(s, sm.Node, before.at, sm.At) {
				before.value = 0
			}
			total += v - before.value
			last[key] = reading{sm.At, v}
		}
	}
	return total, sampled
}

// died tells whether a node died after one reading of its counters and before the next.
func died(s *ledger.Scenario, node string, from, to int64) bool {
	return slices.ContainsFunc(s.Facts.Deaths, func(d ledger.Death) bool { return d.Node == node && d.Over() >= from && d.Over() < to })
}

func isSeries(series, name, label, value string) bool {
	rest, ok := strings.CutPrefix(series, name)
	if !ok || (rest != "" && rest[0] != '{') {
		return false
	}
	return label == "" || strings.Contains(rest, fmt.Sprintf("%s=%q", label, value))
}
