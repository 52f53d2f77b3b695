package sim

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
)

// slowed is a connection between two hosts at a pace from the one that dialled to the other.
func slowed(t *testing.T, p cluster.Pace, f func(r *rig, mine, theirs net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{net: NewNetwork(), nodes: []*simNode{{name: "a"}, {name: "b"}}}
		defer r.net.Close()
		l, err := r.net.Host("b").Listen("tcp", ":7943")
		require.NoError(t, err)
		mine, err := r.net.Host("a").Dial(t.Context(), "tcp", "b:7943", nil)
		require.NoError(t, err)
		theirs, err := l.Accept()
		require.NoError(t, err)
		defer func() { require.NoError(t, mine.Close()); require.NoError(t, theirs.Close()) }()
		p.From, p.To = []string{"a"}, []string{"b"}
		made, err := r.Pace(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, 1, r.Pacings())
		f(r, mine, theirs)
		require.NoError(t, made.Mend(t.Context()))
		require.Zero(t, r.Pacings())
	})
}

// arrives is when n bytes have been read.
func arrives(t *testing.T, c net.Conn, n int) time.Duration {
	t.Helper()
	begin := time.Now()
	_, err := io.ReadFull(c, make([]byte, n))
	require.NoError(t, err)
	return time.Since(begin)
}

// covers: HAR-02
func TestBytesBetweenHostsGoAtTheirPace(t *testing.T) {
	const kilo = 1024
	for name, c := range map[string]struct {
		pace         cluster.Pace
		first, whole time.Duration // of 1 KiB, when its first byte and its last one are there
	}{
		"late":      {cluster.Pace{Latency: 50 * time.Millisecond}, 50 * time.Millisecond, 50 * time.Millisecond},
		"narrow":    {cluster.Pace{Rate: 2 * kilo}, 99609375 * time.Nanosecond, 500 * time.Millisecond}, // a tenth of a second's worth is 204 bytes
		"in pieces": {cluster.Pace{Slice: 256, Pause: 10 * time.Millisecond}, 10 * time.Millisecond, 40 * time.Millisecond},
		"elsewhere": {cluster.Pace{Latency: time.Second, Carries: cluster.CarriesRPC}, 0, 0},
	} {
		slowed(t, c.pace, func(_ *rig, mine, theirs net.Conn) {
			for range 2 {
				_, err := mine.Write(make([]byte, kilo))
				require.NoError(t, err, name)
				first := arrives(t, theirs, 1)
				require.InDelta(t, c.first, first, float64(time.Millisecond), name)
				require.InDelta(t, c.whole, first+arrives(t, theirs, kilo-1), float64(time.Millisecond), name)
			}
			_, err := theirs.Write([]byte("back"))
			require.NoError(t, err)
			require.Zero(t, arrives(t, mine, 4), "%s: the other direction is as ever", name)
		})
	}
}

// The end of a connection comes behind what was said; a reset does not wait; and what is on its way when the pace is taken back arrives at once.
//
// covers: HAR-02
func TestEndsKeepThePaceAndMendingLetsGo(t *testing.T) {
	slowed(t, cluster.Pace{Latency: time.Second}, func(_ *rig, mine, theirs net.Conn) {
		_, err := mine.Write([]byte("last"))
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, mine.Close())
		all, err := io.ReadAll(theirs)
		require.NoError(t, err)
		require.Equal(t, "last", string(all))
		require.Equal(t, time.Second, time.Since(begin))
	})
	slowed(t, cluster.Pace{Latency: time.Hour}, func(r *rig, mine, theirs net.Conn) {
		_, err := mine.Write([]byte("held"))
		require.NoError(t, err)
		require.Equal(t, int64(4), r.net.paces[0].Met())
		require.NoError(t, r.net.paces[0].Mend(t.Context()))
		require.Zero(t, arrives(t, theirs, 4))
		again, err := r.Pace(t.Context(), cluster.Pace{From: []string{"a"}, To: []string{"b"}, Latency: time.Hour})
		require.NoError(t, err)
		_, err = mine.Write([]byte("lost"))
		require.NoError(t, err)
		mine.(*tracked).Reset()
		begin := time.Now()
		_, err = theirs.Read(make([]byte, 4))
		require.Error(t, err)
		require.Zero(t, time.Since(begin))
		require.NoError(t, again.Mend(t.Context()))
	})
}

// unslowed is a rig that says it slowed its nodes, and did nothing.
type unslowed struct{ *rig }

func (unslowed) Pace(context.Context, cluster.Pace) (cluster.Pacing, error) { return met{}, nil }

type met struct{ nothing }

func (met) Met() int64 { return 1000 }

// A toxic between nodes lands when probes on every way and the nodes' own bytes meet it; one that did nothing has not landed.
//
// covers: HAR-02
func TestToxicsBetweenNodesLandAndHeal(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		for _, toxic := range []cluster.Toxic{
			cluster.Latency("x", cluster.Upstream, 80*time.Millisecond), cluster.Bandwidth("x", cluster.Upstream, 16<<10),
			cluster.Slicer("x", cluster.Upstream, 200, 50*time.Millisecond),
		} {
			for _, carries := range []string{cluster.CarriesAll, cluster.CarriesRaft, cluster.CarriesRPC} {
				do := func(rig cluster.Rig) bool {
					f, err := faults.New(faults.Spec{Kind: toxic.Type, Toxic: toxic, Parted: cluster.Cut{
						From: []string{"source-1"}, To: []string{"source-2", "source-3"}, Carries: carries,
					}})
					require.NoError(t, err)
					line, err := faults.Do(t.Context(), rig, f, 10*time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
					require.NoError(t, err, "%v", line.Evidence)
					t.Log(toxic.Type, carries, line.Landed, line.Evidence)
					return line.Landed
				}
				require.True(t, do(r), "%s %s", toxic.Type, carries)
				require.Zero(t, r.(cluster.Paced).Pacings())
				require.False(t, do(unslowed{r.(*rig)}), "%s %s", toxic.Type, carries)
			}
		}
		f, err := faults.New(faults.Spec{Kind: "timeout", Toxic: cluster.Stall("x", cluster.Upstream, 0), Parted: cluster.Cut{From: []string{"source-1"}, To: []string{"source-2"}}})
		require.NoError(t, err)
		require.ErrorContains(t, f.Applies(r), "a timeout between nodes slows nothing")
	})
}
