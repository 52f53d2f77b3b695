package node_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// producer sends the numbers of one key in order and remembers which were answered 202.
type producer struct {
	key   string
	next  int
	acked map[int]bool
}

// run produces until ctx ends, slowly while calm lasts; a batch now and then.
func (p *producer) run(ctx context.Context, c *client.Client, dice *rand.Rand, calm time.Duration) {
	began := time.Now()
	for ctx.Err() == nil {
		first, n := p.next, 1
		var err error
		if dice.IntN(3) == 0 {
			n = 1 + dice.IntN(5)
			recs := make([]wire.NewRecord, n)
			for i := range recs {
				recs[i] = wire.NewRecord{Key: []byte(p.key), Payload: []byte(id(p.key, first+i)), Partition: -1}
			}
			err = c.ProduceBatch(ctx, "orders", "", recs)
		} else {
			err = c.Produce(ctx, "orders", []byte(id(p.key, first)), client.ProduceOptions{Key: p.key})
		}
		p.next += n
		if err != nil {
			return // it is not known whether this one is there
		}
		for i := range n {
			p.acked[first+i] = true
		}
		pause := time.Duration(dice.IntN(3000)) * time.Microsecond
		if time.Since(began) < calm {
			pause *= 50
		}
		time.Sleep(pause)
	}
}

// A node dies again and again at moments that nobody chose, by SIGKILL or by a power loss, and comes back on what its disk
// holds. Whatever was answered 202 is there, and each key's records are in order.
//
// covers: BRK-01, BRK-02, BRK-03, BRK-04
func TestNothingAcknowledgedIsLostToACrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many nodes")
	}
	before := flag.Lookup("rapid.checks").Value.String()
	require.NoError(t, flag.Set("rapid.checks", "8"))
	defer func() { _ = flag.Set("rapid.checks", before) }()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		powers := rapid.SliceOfN(rapid.Bool(), 1, 4).Draw(rt, "power losses")
		var lost error
		inBubble(t, func(_ *testing.T, b *bubble) { lost = crashes(b, seed, powers) })
		if lost != nil {
			rt.Fatal(lost)
		}
	})
}

// crashes gives a node one life per death and looks at what is there in the end.
func crashes(b *bubble, seed uint64, powers []bool) error {
	m := b.machine("node-1")
	m.start()
	m.create("orders")
	var producers []*producer
	for i := range 4 {
		producers = append(producers, &producer{key: fmt.Sprintf("key%d", i), acked: map[int]bool{}})
	}
	dice := rand.New(rand.NewPCG(seed, 1))
	for _, power := range powers {
		lifeOf(m, producers, dice, power)
		m.start()
	}
	b.eventually("the backlog is dispatched", func() bool {
		_, page := m.get("/metrics", true)
		return strings.Contains(page, "narad_ingress_dispatch_backlog_records 0\n")
	})
	err := checkStored(m.stored("orders"), producers)
	m.stop()
	return err
}

// lifeOf lets the producers run for a while that is chosen by chance and kills the node with their requests on the wire, or
// right after the last one was answered.
func lifeOf(m *machine, producers []*producer, dice *rand.Rand, power bool) {
	ctx, cancel := context.WithCancel(m.b.t.Context())
	defer cancel()
	calm := time.Duration(dice.IntN(2)) * 1500 * time.Millisecond // long enough for checkpoints and frontiers to be synced
	var wg sync.WaitGroup
	for _, p := range producers {
		own := rand.New(rand.NewPCG(dice.Uint64(), 2))
		wg.Go(func() { p.run(ctx, m.client(), own, calm) })
	}
	time.Sleep(calm + time.Duration(dice.IntN(60_000))*time.Microsecond)
	if dice.IntN(3) == 0 {
		cancel()
		wg.Wait()
	}
	m.kill(power)
	wg.Wait()
}

// checkStored looks for every acknowledged record and for the order of first occurrences.
func checkStored(parts [][]string, producers []*producer) error {
	for _, p := range producers {
		seen, last := map[string]bool{}, ""
		for _, part := range parts {
			for _, payload := range part {
				if !strings.HasPrefix(payload, p.key+"-") || seen[payload] {
					continue
				}
				if payload < last {
					return fmt.Errorf("%s came after %s", payload, last)
				}
				seen[payload], last = true, payload
			}
		}
		for n := range p.acked {
			if !seen[id(p.key, n)] {
				return fmt.Errorf("%s was acknowledged and is gone", id(p.key, n))
			}
		}
	}
	return nil
}

// A stop that has time ends with an empty ingress, and nothing is repeated after it.
//
// covers: BRK-04
func TestAStopDrainsTheIngress(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		for i := range 50 {
			m.produce("orders", fmt.Sprint(i%5), id("r", i))
		}
		m.stop()
		require.NotContains(t, m.log.String(), "stopped before every accepted record")
		m.start()
		require.Equal(t, 50, m.count("orders"), "no record twice")
		m.stop()
	})
}
