package invariant

import (
	"fmt"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// noGap is HAR-05, by record and not by counter: (1) every record that the source acknowledged is in the parent; (2) every parent
// record from the epoch's start on is in an accepted request once drained, or skipped, or in a logged drop range; (3) what the present
// incarnation of the target accepted is in its log.
func noGap(s *ledger.Scenario) *finding {
	f := &finding{promise: "every acknowledged record is in the parent, every parent record was accepted by the target, every accepted one is in its log"}
	need := []string{ledger.FactsName, ledger.OperationsName, ledger.ParentName, ledger.WireName}
	if !s.Facts.Fake {
		need = append(need, ledger.TargetName)
	}
	if missing := s.Lacks(need...); missing != "" {
		return f.lack("%s", missing)
	}
	if !s.Facts.WireRead {
		f.lack("the tap's requests were not read to their end")
	}
	acknowledged := gapAtSource(s, f)
	shipped := 0
	for i := range s.Facts.Links {
		if l := &s.Facts.Links[i]; l.DetachedAt == 0 {
			shipped += gapOnWire(s, f, l)
		}
	}
	if len(s.Facts.Links) == 0 {
		f.lack("no link is known")
	}
	if acknowledged == 0 {
		f.lack("nothing was acknowledged")
	}
	stored := 0
	if !s.Facts.Fake {
		stored = gapAtTarget(s, f)
	}
	f.looked = fmt.Sprintf("%d acknowledged, %d owed on the wire, %d in the target's log", acknowledged, shipped, stored) + countedLoss(s, f)
	return f
}

// countedLoss is the loss that a pass admits (CUR-10, BR-01): what the logged drop ranges name, which the counter must equal, no more and no
// less. It returns the words for it, "" without a loss.
func countedLoss(s *ledger.Scenario, f *finding) string {
	var lost int64
	var ranges []string
	for _, d := range s.Facts.Drops {
		lost += d.Records
		ranges = append(ranges, fmt.Sprintf("%s/%s/%d %d to %d", d.Parent, d.Child, d.Partition, d.From, d.To))
	}
	counted, sampled := counter(s, "narad_fanout_child_dropped_messages", "", "")
	if sampled && len(s.Facts.Deaths) == 0 && int64(counted) != lost {
		f.breaks("counted loss", "the log names %d dropped records, narad_fanout_child_dropped_messages counts %d", lost, int64(counted))
	}
	if lost == 0 {
		return ""
	}
	return fmt.Sprintf("; a pass with counted loss of %d records (%s)", lost, strings.Join(ranges[:min(len(ranges), maxSays)], ", "))
}

func gapAtSource(s *ledger.Scenario, f *finding) int {
	in := map[string]map[string]bool{}
	for _, r := range s.Parent {
		if in[r.Topic] == nil {
			in[r.Topic] = map[string]bool{}
		}
		in[r.Topic][r.ID] = true
	}
	n := 0
	unread := map[string]bool{}
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Kind != ledger.KindProduce || o.Outcome != ledger.Acknowledged {
			continue
		}
		n++
		switch {
		case in[o.Topic][o.ID]:
		case !slices.Contains(s.Facts.Parents, o.Topic):
			unread[o.Topic] = true
		default:
			f.breaks(o.ID, "%s was acknowledged by %s at %d ms and is not in %s", o.ID, o.Node, o.Done, o.Topic)
		}
	}
	for t := range unread {
		f.lack("parent %s was not read to its end", t)
	}
	return n
}

func gapOnWire(s *ledger.Scenario, f *finding, l *ledger.Link) int {
	if !slices.Contains(s.Facts.Parents, l.Parent) {
		f.lack("parent %s was not read to its end", l.Parent)
	}
	waiting := waits(s, l)
	if s.Facts.Phases.Drained == 0 && !waiting {
		f.lack("%s never drained, so what is missing may still have come", l.Name())
		return 0
	}
	on := map[string]bool{}
	for _, r := range accepted(s) {
		if ofEpoch(s, l, &r) {
			for _, rec := range r.Records {
				on[rec.ID] = true
			}
		}
	}
	n := 0
	for _, r := range s.Parent {
		at := place{r.Partition, r.Offset}
		if r.Topic != l.Parent || r.Gone != 0 || excused(s, l, at) {
			continue
		}
		if waiting && r.Offset >= l.NextOffsets[r.Partition] {
			continue
		}
		n++
		if !on[r.ID] && s.Facts.WireRead {
			f.breaks(r.ID, "%s, %s of %s, is in no accepted request of %s", r.ID, at, l.Parent, l.Child)
		}
	}
	return n
}

func gapAtTarget(s *ledger.Scenario, f *finding) int {
	in := map[string]bool{}
	for _, r := range s.Target {
		in[r.Topic+" "+r.ID] = true
	}
	present := map[string]string{} // target topic: ID of the present incarnation
	for _, l := range s.Facts.Links {
		present[l.TargetTopic] = l.TargetID
		if !slices.Contains(s.Facts.Targets, l.TargetTopic) {
			f.lack("target topic %s was not read to its end", l.TargetTopic)
			return 0
		}
	}
	n := 0
	for _, r := range accepted(s) {
		id, ours := present[r.Topic]
		if !ours || (r.TopicID != "" && id != "" && r.TopicID != id) {
			continue
		}
		for _, rec := range r.Records {
			n++
			if !in[r.Topic+" "+rec.ID] {
				f.breaks(rec.ID, "%s was accepted in request %d and is not in the log of %s", rec.ID, r.Seq, r.Topic)
			}
		}
	}
	return n
}
