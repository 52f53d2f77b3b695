package peer

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Both ends say their cluster behind the proofs: two that differ refuse each other before a byte of a call flows, whoever knows none, or is of a
// release that says none, is taken.
//
// covers: BRK-07
func TestClustersAreCompared(t *testing.T) {
	is := func(id string) func() string { return func() string { return id } }
	long := make([]byte, 2*maxCluster)
	for name, c := range map[string]struct {
		client, server func() string
		foreign        bool
	}{
		"the same":              {is("a"), is("a"), false},
		"another":               {is("a"), is("b"), true},
		"a client that is new":  {is(""), is("b"), false},
		"a server that is new":  {is("a"), is(""), false},
		"a client that is old":  {nil, is("b"), false},
		"a server that is old":  {is("a"), nil, false},
		"both are old":          {nil, nil, false},
		"an ID that is cut off": {is(string(long)), is(string(long)), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				log := &lines{}
				s := NewServer(ServerOptions{Secret: secret, Cluster: c.server, Logger: slog.New(slog.NewTextHandler(log, nil))})
				calls := 0
				s.Handle("Echo", func(_ context.Context, body []byte) ([]byte, error) { calls++; return body, nil })
				var running sync.WaitGroup
				l := n.listen("a")
				running.Go(func() { _ = s.Serve(l) })
				client := NewClient(ClientOptions{Secret: secret, Cluster: c.client, Dial: n.dial})
				defer func() { client.Close(); s.Close(); running.Wait() }()
				got, err := client.Call(t.Context(), "a", "Echo", []byte("x"))
				if !c.foreign {
					require.NoError(t, err)
					require.Equal(t, "x", string(got))
					return
				}
				require.ErrorIs(t, err, ErrCluster)
				require.ErrorIs(t, err, ErrUnreachable)
				require.NotErrorIs(t, err, ErrSecret)
				require.ErrorContains(t, err, `it is of "b", this node of "a"`)
				require.Zero(t, calls)
				synctest.Wait()
				require.Contains(t, log.String(), "refused a peer of another cluster")
				require.Contains(t, log.String(), "storage.data_dir")
			})
		})
	}
}
