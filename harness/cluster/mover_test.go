package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	members "narad.example/narad/cluster"
	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

// memberThat serves the node RPC of a member and answers proposals.
func memberThat(t *testing.T, secret string, answers func(entry []byte) ([]byte, error)) string {
	t.Helper()
	l, err := net.Listen("tcp", loopback(0))
	require.NoError(t, err)
	s := peer.NewServer(peer.ServerOptions{Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	s.Handle(members.OpPropose, func(_ context.Context, entry []byte) ([]byte, error) { return answers(entry) })
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) }) // until Close
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// covers: HAR-02
func TestAMoveIsPutToTheLeader(t *testing.T) {
	const secret = "a secret of the cluster, long enough"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := wire.TopicDetail{PartitionStats: []wire.PartitionStats{{Index: 2, OwnerNode: "source-3"}}}
		d.ID = "00000000000000aa"
		assert.Equal(t, "/v1/topics/orders", r.URL.Path)
		assert.NoError(t, json.NewEncoder(w).Encode(d))
	}))
	defer api.Close()
	web := newWeb(nil)
	defer web.close()
	n := &processNode{base: api.URL, web: web}

	var proposed []meta.Entry
	follows := memberThat(t, secret, func([]byte) ([]byte, error) { return []byte(`{"not_leader":true}`), nil })
	leads := memberThat(t, secret, func(b []byte) ([]byte, error) {
		e, err := meta.Decode(b)
		require.NoError(t, err)
		proposed = append(proposed, e)
		if len(proposed) > 1 {
			return nil, wire.Refuse(wire.Conflict, "it moves already")
		}
		return []byte(`{"index":7}`), nil
	})
	v := &mover{secret: secret, at: func(context.Context) []string { return []string{"127.0.0.1:1", follows, leads} }}
	require.NoError(t, v.move(t.Context(), n, "orders", 2, "source-1"))
	require.Len(t, proposed, 1)
	e := proposed[0].(meta.StartMove)
	require.NotEmpty(t, e.MoveID)
	e.MoveID = ""
	require.Equal(t, meta.StartMove{TopicID: "00000000000000aa", Partition: 2, From: "source-3", To: "source-1"}, e)
	require.ErrorContains(t, v.move(t.Context(), n, "orders", 2, "source-1"), "it moves already")
	v.at = func(context.Context) []string { return []string{follows} }
	require.ErrorContains(t, v.move(t.Context(), n, "orders", 2, "source-1"), "no node of the cluster leads")
}
