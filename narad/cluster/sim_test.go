package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

const secret = "dGhlIHNlY3JldCBvZiB0aGlzIGNsdXN0ZXIgaXMgbG9uZw=="

// sim is three nodes of metadata, node RPC and membership on a network in memory.
type sim struct {
	t     *testing.T
	net   *network
	dirs  map[string]string
	nodes map[string]*simNode
}

type simNode struct {
	store   *meta.Store
	server  *peer.Server
	client  *peer.Client
	hearts  *Heartbeats
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newSim(t *testing.T) *sim {
	s := &sim{t: t, net: newNetwork(), dirs: map[string]string{}, nodes: map[string]*simNode{}}
	for _, id := range []string{"n1", "n2", "n3"} {
		s.dirs[id] = t.TempDir()
	}
	for id := range s.dirs {
		s.start(id)
	}
	return s
}

func (s *sim) start(id string) *simNode {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &simNode{cancel: cancel}
	quiet := slog.New(slog.DiscardHandler)
	n.client = peer.NewClient(peer.ClientOptions{Secret: secret, Dial: s.net.dial})
	var servers []meta.Server
	for other := range s.dirs {
		servers = append(servers, meta.Server{ID: other, Addr: "raft-" + other})
	}
	store, err := meta.Open(meta.Options{
		NodeID: id, Dir: s.dirs[id], Bootstrap: servers, Transport: rafts{s.net.listen("raft-" + id), s.net},
		Forward: NewForwarder(n.client), Logger: quiet, NoSync: true, TrailingLogs: 2,
	})
	require.NoError(s.t, err)
	n.store = store
	n.server = peer.NewServer(peer.ServerOptions{Secret: secret, Logger: quiet})
	n.hearts = NewHeartbeats(id, store, n.client)
	n.server.Handle(OpPropose, HandlePropose(store))
	n.server.Handle(OpHeartbeat, n.hearts.Handle)
	rpc := s.net.listen("rpc-" + id)
	n.running.Go(func() { _ = n.server.Serve(rpc) })
	registrar := &Registrar{Meta: store, Logger: quiet, Member: meta.Member{ID: id, RaftAddr: "raft-" + id, RPCAddr: "rpc-" + id}}
	n.running.Go(func() { _ = registrar.Run(ctx) })
	n.running.Go(func() { _ = n.hearts.Run(ctx) })
	s.nodes[id] = n
	return n
}

func (s *sim) stop(id string) {
	s.t.Helper()
	n := s.nodes[id]
	delete(s.nodes, id)
	n.cancel()
	n.server.Close()
	require.NoError(s.t, n.store.Close())
	n.client.Close()
	n.running.Wait()
}

func (s *sim) end() {
	for id := range s.nodes {
		s.stop(id)
	}
}

// until waits in virtual time.
func (s *sim) until(what string, ok func() bool) {
	s.t.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(s.t, "not within a minute: "+what)
}

// settled waits for a leader and for all members on all running nodes.
func (s *sim) settled() (leader string) {
	s.t.Helper()
	s.until("a leader, members everywhere", func() bool {
		leader = ""
		for id, n := range s.nodes {
			if len(n.store.Members()) != len(s.dirs) {
				return false
			}
			if n.store.IsLeader() {
				leader = id
			}
		}
		if leader == "" {
			return false
		}
		for _, n := range s.nodes {
			if id, _, ok := n.store.Leader(); !ok || id != leader || !n.store.CaughtUp() {
				return false
			}
		}
		return true
	})
	return leader
}

func (s *sim) follower(leader string) *simNode {
	for id, n := range s.nodes {
		if id != leader {
			return n
		}
	}
	require.Fail(s.t, "no follower")
	return nil
}

func someTopic(name string) meta.CreateTopic {
	return meta.CreateTopic{Topic: meta.Topic{Name: name, ID: meta.NewID(), Partitions: 3, Nodes: []string{"n1", "n2", "n3"}}}
}

func inSim(t *testing.T, test func(t *testing.T, s *sim)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t)
		defer s.end()
		test(t, s)
	})
}

// covers: BRK-06, BRK-07, WRT-02
func TestAWriteThroughAFollower(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		f := s.follower(s.settled())
		for _, e := range []meta.Entry{
			someTopic("t"), meta.PutUser{User: meta.User{Name: "u"}, Create: true},
			meta.PutRemote{Remote: meta.Remote{Name: "r", ID: meta.NewID()}, Salt: make([]byte, meta.SaltBytes)},
		} {
			index, err := f.store.Propose(t.Context(), e)
			require.NoError(t, err)
			require.GreaterOrEqual(t, f.store.Applied(), index, "it is applied where it was asked for")
		}
		_, isTopic := f.store.Topic("t")
		_, isUser := f.store.User("u")
		_, isRemote := f.store.Remote("r")
		require.True(t, isTopic && isUser && isRemote)
		s.until("all three on all nodes", func() bool {
			for _, n := range s.nodes {
				if n.store.Applied() != f.store.Applied() {
					return false
				}
			}
			return true
		})
		for _, n := range s.nodes {
			require.Equal(t, f.store.Topics(), n.store.Topics())
			require.Equal(t, f.store.Users(), n.store.Users())
			require.Equal(t, f.store.Remotes(), n.store.Remotes())
			require.Equal(t, f.store.Salt(), n.store.Salt())
		}
		_, err := f.store.Propose(t.Context(), someTopic("T"))
		var p *wire.Problem
		require.ErrorAs(t, err, &p, "a refusal comes back through the forward")
		require.Equal(t, wire.Conflict, p.Kind)
		require.Contains(t, p.Text, "differs only in letter case")
	})
}

// covers: BRK-07
func TestTheLeaderDies(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		first := s.settled()
		f := s.follower(first)
		s.stop(first)
		_, err := f.store.Propose(t.Context(), someTopic("at-once"))
		if err != nil { // an election may take longer than a proposal waits, and then says so
			require.Equal(t, wire.Unavailable, wire.KindOf(err))
		}
		second := s.settled()
		require.NotEqual(t, first, second)
		_, err = f.store.Propose(t.Context(), someTopic("after"))
		require.NoError(t, err)
		require.NoError(t, s.nodes[second].store.Barrier(t.Context()))
		time.Sleep(20 * time.Second)
		age, known := s.nodes[second].hearts.Age(first)
		require.True(t, known)
		require.Less(t, age, DeadAfter, "a new leader gives everyone time")
		time.Sleep(20 * time.Second)
		age, _ = s.nodes[second].hearts.Age(first)
		require.GreaterOrEqual(t, age, DeadAfter)
		for id := range s.nodes {
			alive, _ := s.nodes[second].hearts.Age(id)
			require.Less(t, alive, 2*HeartbeatInterval)
		}
		// Without a majority nothing is written and nothing is claimed.
		s.stop(s.other(second))
		_, err = s.nodes[second].store.Propose(t.Context(), someTopic("alone"))
		require.Equal(t, wire.Unavailable, wire.KindOf(err))
		time.Sleep(10 * time.Second)
		require.False(t, s.nodes[second].store.CaughtUp())
		_, stored := s.nodes[second].store.Topic("alone")
		require.False(t, stored)
	})
}

func (s *sim) other(than string) string {
	for id := range s.nodes {
		if id != than {
			return id
		}
	}
	return ""
}

// A follower that was away while the log was cut gets the leader's snapshot, which replaces what it had.
// covers: BRK-06, BRK-07
func TestAFollowerComesBackThroughASnapshot(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		leader := s.settled()
		away := s.other(leader)
		_, err := s.nodes[leader].store.Propose(t.Context(), someTopic("doomed"))
		require.NoError(t, err)
		s.until("the follower has it", func() bool {
			_, ok := s.nodes[away].store.Topic("doomed")
			return ok
		})
		require.NoError(t, s.nodes[away].store.Snapshot())
		s.stop(away)
		lead := s.nodes[leader].store
		doomed, _ := lead.Topic("doomed")
		_, err = lead.Propose(t.Context(), meta.DeleteTopic{Name: "doomed", ID: doomed.ID})
		require.NoError(t, err)
		for i := range 20 {
			_, err = lead.Propose(t.Context(), someTopic(fmt.Sprint("t", i)))
			require.NoError(t, err)
		}
		require.NoError(t, lead.Snapshot())
		_, err = lead.Propose(t.Context(), someTopic("last"))
		require.NoError(t, err)

		back := s.start(away)
		version := back.store.RemotesVersion()
		require.NoError(t, back.store.WaitApplied(t.Context(), lead.Applied()))
		require.Equal(t, lead.Topics(), back.store.Topics())
		require.Greater(t, back.store.RemotesVersion(), version, "a restore moves the remotes version")
		s.settled()
		// Raft learns what the follower holds from its answers: one that is stopped before the answer is through would be sent
		// the snapshot again, which is the case above.
		time.Sleep(2 * time.Second)

		// And again from its own disk alone.
		s.stop(away)
		back = s.start(away)
		require.NoError(t, back.store.WaitApplied(t.Context(), lead.Applied()))
		require.Equal(t, lead.Topics(), back.store.Topics())
	})
}

func TestAQuietClusterWritesNoEntries(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		leader := s.settled()
		before := s.nodes[leader].store.Applied()
		time.Sleep(10 * time.Minute)
		require.Equal(t, before, s.nodes[leader].store.Applied())
	})
}
