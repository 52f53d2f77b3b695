package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"narad.example/harness/ledger"
)

// dispatched is BRK-02 over a source of several nodes: the keyed records that one node took one after the other lie in their partition in that
// order, and what a retry or a new start put there again is repeated in order too: whatever was taken after a record and lies between two copies of it
// comes again behind them. Records without a key may have gone to a sibling, and are left out. A topic that was read as two incarnations is too.
func dispatched(s *ledger.Scenario) *finding {
	f := &finding{promise: "a node's records of a key lie in their partition in the order in which it took them, repeated ones too"}
	if missing := s.Lacks(ledger.FactsName, ledger.OperationsName, ledger.ParentName); missing != "" {
		return f.lack("%s", missing)
	}
	if s.Facts.Sources < 2 {
		f.looked = "a source of one node sends nothing to another"
		return f
	}
	took := map[string]*ledger.Operation{}
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Kind == ledger.KindProduce && o.Outcome == ledger.Acknowledged && o.Key != "" {
			took[o.ID] = o
		}
	}
	n := 0
	for w, list := range ways(s, took) {
		slices.SortFunc(list, func(a, b laid) int { return cmp.Compare(a.offset, b.offset) })
		firstsInOrder(f, w, list)
		repeatsInOrder(f, w, list)
		n += len(list)
	}
	f.looked = fmt.Sprintf("%d records with a key", n)
	return f
}

// way is from a node to a partition; its records wait in one queue.
type way struct {
	topic     string
	partition int
	node      string
}

type laid struct {
	offset int64
	op     *ledger.Operation
}

// ways sorts what lies in the parents by the way that it came.
func ways(s *ledger.Scenario, took map[string]*ledger.Operation) map[way][]laid {
	out := map[way][]laid{}
	type place struct {
		topic     string
		partition int
		offset    int64
	}
	at := map[place]bool{}
	twice := map[string]bool{}
	for _, r := range s.Parent {
		p := place{r.Topic, r.Partition, r.Offset}
		twice[r.Topic] = twice[r.Topic] || at[p]
		at[p] = true
		if o := took[r.ID]; o != nil {
			w := way{r.Topic, r.Partition, o.Node}
			out[w] = append(out[w], laid{r.Offset, o})
		}
	}
	for w := range out {
		if twice[w.topic] {
			delete(out, w)
		}
	}
	return out
}

// firstsInOrder wants no record behind one that was offered only after the node had answered for it.
func firstsInOrder(f *finding, w way, list []laid) {
	seen := map[string]bool{}
	var latest laid
	for _, l := range list {
		if seen[l.op.ID] {
			continue
		}
		seen[l.op.ID] = true
		if latest.op != nil && l.op.Done < latest.op.At {
			f.breaks(l.op.ID, "%s (%s/%d/%d) lies behind %s (offset %d), which %s took later", l.op.ID, w.topic, w.partition, l.offset, latest.op.ID, latest.offset, w.node)
			continue
		}
		if latest.op == nil || l.op.At > latest.op.At {
			latest = l
		}
	}
}

// repeatsInOrder wants everything between two copies of a record that was taken after it to come again behind the second.
func repeatsInOrder(f *finding, w way, list []laid) {
	last, before := map[string]int{}, map[string]int{}
	for i, l := range list {
		last[l.op.ID] = i
	}
	for j, l := range list {
		i, again := before[l.op.ID]
		before[l.op.ID] = j
		if !again {
			continue
		}
		for k := i + 1; k < j; k++ {
			if other := list[k]; other.op.At > l.op.Done && last[other.op.ID] < j {
				f.breaks(l.op.ID, "%s (%s/%d/%d) lies there again at %d, behind %s, which does not", l.op.ID, w.topic, w.partition, list[i].offset, l.offset, other.op.ID)
				break
			}
		}
	}
}
