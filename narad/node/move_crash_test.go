package node_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/move"
	"narad.example/narad/wire"
)

// failpoint stops the next move to any of some machines at one step, once, until it is let go.
type failpoint struct {
	mu      sync.Mutex // guards what follows
	step    move.Step
	reached chan struct{}
	gone    chan struct{}
}

// arm has the next move stop at a step.
func (f *failpoint) arm(s move.Step) (reached <-chan struct{}, letGo func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.step, f.reached, f.gone = s, make(chan struct{}), make(chan struct{})
	return f.reached, sync.OnceFunc(func() { close(f.gone) })
}

func (f *failpoint) at(ctx context.Context, s move.Step) {
	f.mu.Lock()
	if s != f.step {
		f.mu.Unlock()
		return
	}
	f.step = ""
	reached, gone := f.reached, f.gone
	f.mu.Unlock()
	close(reached)
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// leader is the machine that leads, nil while nobody does.
func leader(all []*machine) *machine {
	for _, m := range all {
		if m.node == nil {
			continue
		}
		if _, page := m.get("/metrics", true); hasSeries(page, "narad_raft_state", `state="leader"`) {
			return m
		}
	}
	return nil
}

// At every step of a move its source, its target, both, or the leader are killed, under load, with a local child and a link on the
// topic. Each time the move comes to an end by itself, the partition has one owner, and nobody has lost a record or its order.
//
// covers: BRK-06, BRK-07, CUR-12
func TestAMoveOutlivesEveryCrash(t *testing.T) {
	for _, who := range []string{"source", "target", "both", "leader"} {
		t.Run(who, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) { crashMoves(t, b, who) })
		})
	}
}

func crashMoves(t *testing.T, b *bubble, who string) {
	fail := &failpoint{}
	b.atStep = fail.at
	all, target := farLink(t, b)
	all[0].create("copy")
	b.everywhere(all, "copy")
	_, err := all[1].client().AttachChild(t.Context(), "orders", wire.AttachChild{Child: "copy"})
	require.NoError(t, err)
	load := b.produceSteadily(all, "orders")
	for i, step := range move.Steps {
		time.Sleep(time.Second)
		p := i % 3
		d := b.everywhere(all, "orders")
		from := owner(all, d, p)
		to := other(all, from)
		reached, letGo := fail.arm(step)
		b.eventually("the move begins", func() bool { return to.node.Move(t.Context(), "orders", p, to.name) == nil })
		<-reached
		var victims []*machine
		switch who {
		case "source":
			victims = []*machine{from}
		case "target":
			victims = []*machine{to}
		case "both":
			victims = []*machine{from, to}
		case "leader":
			b.eventually("somebody leads", func() bool { victims = []*machine{leader(all)}; return victims[0] != nil })
		}
		for _, v := range victims {
			v.kill(i%2 == 0) // with a power loss, or without
		}
		letGo()
		time.Sleep(3 * time.Second)
		for _, v := range victims {
			v.start()
		}
		for _, v := range victims {
			b.ready(v)
		}
		b.moved(all, "orders", p, from, to)
	}
	total := load.end()
	require.Greater(t, total, 100)
	b.settled(all, target)
	load.holds(t, "the parent", all[0].stored("orders"))
	load.holds(t, "the target", target.stored("orders"))
	load.holds(t, "the child", all[1].stored("copy"))
	for _, m := range append(all, target) {
		m.stop()
	}
}

// settled waits until every record of orders is with the child copy and the link's target.
func (b *bubble) settled(all []*machine, target *machine) {
	b.t.Helper()
	for _, m := range all {
		b.eventually(m.name+" has handed on what it took", func() bool { return m.backlog() == "0" })
	}
	for _, m := range all {
		b.eventually("drained, says "+m.name, func() bool {
			far, near := m.child("orders", "orders-dr"), m.child("orders", "copy")
			return far.LagComplete && near.LagComplete && far.LagMessages == 0 && near.LagMessages == 0
		})
	}
	last := 0
	b.eventually("the target has handed on what it took", func() bool {
		n := target.count("orders")
		same := n == last
		last = n
		time.Sleep(time.Second)
		return same
	})
}
