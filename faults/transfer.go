package faults

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"narad.example/harness/cluster"
)

// Transferred is the kind of a fault that has a leader hand its lead over.
const Transferred = "transfer"

// Transfer has the leader of a side hand its lead to another node. Where nobody can ask it for that alone, a graceful stop does it: a node that
// stops hands over first. Such a node starts again.
type Transfer struct{ Process }

// Applies checks that the node leads.
func (f *Transfer) Applies(rig cluster.Rig) error {
	n, err := rig.Node(f.Node)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if !n.Running() || !cluster.Leads(soon, n) {
		return fmt.Errorf("%s does not lead", f.Node)
	}
	return nil
}

// electing is what a node logs that misses its leader, which in a transfer nobody does.
const electing = "heartbeat timeout reached, starting election"

// transferLimit is how long the next leader may take to say that it leads.
const transferLimit = 5 * time.Second

// Inject hands over, and shows that one other node leads, this one does not, and nobody began an election for want of a leader. In Raft another
// leader is another term; where the node tells its term, that must have grown.
func (f *Transfer) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	n, err := rig.Node(f.Node)
	if err != nil {
		return false, nil, err
	}
	begin := time.Now()
	e := Evidence{"by": "graceful stop"}
	before, err := elections(rig, n.Side())
	if err != nil {
		return false, nil, err
	}
	stepper, alone := n.(cluster.Stepper)
	var term uint64
	if alone {
		e["by"] = "step down"
		term = stepper.Term()
		err = stepper.StepDown(ctx)
	} else {
		err = f.stop(ctx, n)
	}
	if err != nil {
		return false, e, err
	}
	next := f.next(ctx, rig, n.Side())
	e["leader"], e["took_ms"] = next, ms(time.Since(begin))
	later := true
	if alone {
		e["term_before"], e["term"] = term, stepper.Term()
		later = stepper.Term() > term
	}
	after, err := elections(rig, n.Side())
	e["elections"] = after - before
	return next != "" && later && after == before, e, err
}

// elections counts the elections that the nodes of a side have begun for want of a leader.
func elections(rig cluster.Rig, side string) (count int, err error) {
	for _, n := range rig.Nodes(side) {
		log, err := n.Log()
		if err != nil {
			return 0, err
		}
		count += bytes.Count(log, []byte(electing))
	}
	return count, nil
}

// next is who leads once it is one node, "" when nobody, or several, or still this one, did in time.
func (f *Transfer) next(ctx context.Context, rig cluster.Rig, side string) string {
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	for {
		var lead []string
		for _, n := range rig.Nodes(side) {
			if n.Running() && cluster.Leads(ctx, n) {
				lead = append(lead, n.Name())
			}
		}
		if len(lead) == 1 && lead[0] != f.Node {
			return lead[0]
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ""
		}
	}
}
