package node_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// value reads a series of a machine as a number; one that is not there is 0.
func (m *machine) value(series string) float64 {
	m.b.t.Helper()
	_, page := m.get("/metrics", true)
	text := metric(page, series)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(m.b.t, err)
	return v
}

// A link whose remote has compression: zstd sends less than it has to say, and the target stores every byte as it was.
//
// covers: SND-10
func TestALinkThatCompresses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		compression := "zstd"
		_, err := p.source.client().Remotes().Patch(t.Context(), "dr", wire.PatchRemote{Limits: &wire.PatchLimits{Compression: &compression}})
		require.NoError(t, err)
		var want []string
		for i := range 60 {
			payload := fmt.Sprintf(`{"n": %d,  "text":%q}`, i, strings.Repeat("nothing happened; ", 100))
			if i%3 == 0 {
				payload = fmt.Sprintf("%d: %s\xff", i, strings.Repeat("no JSON ", 200))
			}
			want = append(want, payload)
			p.source.produce("orders", "k", payload)
		}
		b.eventually("all is shipped", func() bool {
			lag, e := p.lag()
			return e.LagComplete && lag == 0 && p.target.count("orders") >= len(want)
		})
		var have []string
		for _, part := range p.target.stored("orders") {
			have = append(have, part...)
		}
		require.Equal(t, want, have)
		plain, sent := p.source.value(`narad_remote_body_bytes_total{remote="dr"}`), p.source.value(`narad_remote_wire_bytes_total{remote="dr"}`)
		require.Greater(t, plain, 80_000.0)
		require.Less(t, sent, plain/2)
		p.source.stop()
		p.target.stop()
	})
}

// An outage of twelve minutes: the link shows why it waits, what its lanes hold (the slabs that were read before the gate closed) stays within
// remotes.max_held_bytes, and afterwards everything arrives once and in order, and the budget is empty. With a budget too small for a slab the slab is read again after each wait.
//
// covers: GAT-07, GAT-08
func TestALongOutageWithinTheHeldBudget(t *testing.T) {
	for _, c := range []struct {
		name    string
		budget  int64
		rereads bool
	}{{"held", 256 << 10, false}, {"no room", 600, true}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				p := link(t, b)
				p.produce(0, 12)
				p.shipped(12)
				p.target.stop()
				p.produce(12, 120)
				p.source.stop() // its next start finds whole slabs
				p.source.config.Remotes.MaxHeldBytes = c.budget
				p.source.start()
				b.eventually("the link shows it", func() bool { _, e := p.lag(); return e.State == wire.LinkState("unavailable") })
				for range 3 {
					time.Sleep(4 * time.Minute)
					held := p.source.value("narad_remote_held_bytes")
					require.LessOrEqual(t, held, float64(c.budget))
					require.Equal(t, c.rereads, held < 1000, "bytes held: %v", held)
				}
				lag, e := p.lag()
				require.EqualValues(t, 108, lag)
				require.Equal(t, wire.LinkState("unavailable"), e.State)
				require.Equal(t, "unavailable", p.fare().LastError, "the remote's row says why")
				const rereads = `narad_fanout_remote_rereads_total{child="orders-dr",parent="orders"}`
				require.Equal(t, c.rereads, p.source.value(rereads) > 0)
				p.target.start()
				p.produce(120, 126)
				require.Equal(t, 126, p.shipped(126), "each record once")
				b.eventually("the remote's row is clean", func() bool { f := p.fare(); return f.LastError == "none" && f.LastOKAt != nil })
				b.eventually("the budget is empty", func() bool { return p.source.value("narad_remote_held_bytes") == 0 })
				p.source.stop()
				p.target.stop()
			})
		})
	}
}

// fare is how the remote fares on the source, as its admin sees it.
func (p *pair) fare() wire.RemoteNode {
	p.t.Helper()
	r, err := p.source.client().Remotes().Get(p.t.Context(), "dr", true)
	require.NoError(p.t, err)
	require.Len(p.t, r.Nodes, 1)
	return r.Nodes[0]
}
