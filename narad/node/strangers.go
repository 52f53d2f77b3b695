package node

import (
	"context"
	"strings"
	"sync"
	"time"

	"narad.example/narad/cluster"
	"narad.example/narad/meta"
)

// strangers keeps why the last Raft connection was refused, for the probe of a node that hears no leader.
type strangers struct {
	mu   sync.Mutex // guards the rest
	last error
	at   time.Time
}

// recently is how long a refusal explains that no leader is heard of.
const recently = time.Minute

func (s *strangers) meets(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.at = err, time.Now()
}

func (s *strangers) met() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) > recently {
		return nil
	}
	return s.last
}

// clusterOf tells this node's cluster to the node RPC: from its folder, once that is open what the metadata knows. Nil in an older release.
func (n *Node) clusterOf(folder meta.Folder) func() string {
	if n.o.Older {
		return nil
	}
	return func() string {
		if s := n.status.opened.Load(); s != nil {
			return s.Cluster()
		}
		return folder.Cluster
	}
}

// advertised is where the other nodes reach this one's Raft.
func (n *Node) advertised() string {
	addr := n.cfg.Cluster.AdvertiseAddr
	for _, p := range n.cfg.Cluster.Peers {
		if id, at, _ := strings.Cut(p, "@"); id == n.id && addr == "" {
			addr = at
		}
	}
	return addr
}

// meet asks the peers whether this node may start over its folder, before anything is opened.
func (n *Node) meet(ctx context.Context, folder meta.Folder) error {
	if n.o.Older {
		return nil
	}
	c := n.cfg.Cluster
	own, err := rpcOf(n.advertised(), "")
	if err != nil {
		return err
	}
	m := &cluster.Meeting{
		Call: n.plane.client.Call, ID: n.id, Raft: n.advertised(), Own: own, Peers: map[string]string{},
		Folder: folder, Dir: n.raftDir(), First: first(c, n.id),
	}
	for _, p := range c.Peers {
		id, addr, _ := strings.Cut(p, "@")
		if reached, err := rpcOf(addr, ""); err == nil && id != n.id {
			m.Peers[id] = reached
		}
	}
	return m.Ask(ctx)
}
