package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"narad.example/narad/cluster"
	"narad.example/narad/meta"
)

// strangers keeps why this node meets nobody, for the probe of one that hears no leader.
type strangers struct {
	mu      sync.Mutex // guards the rest
	refused reason     // the last Raft connection that was
	nowhere reason     // the last name that did not resolve
}

type reason struct {
	err error
	at  time.Time
}

// recently is how long a reason explains that no leader is heard of.
const recently = time.Minute

func (s *strangers) meets(err error) { s.note(&s.refused, err) }

func (s *strangers) note(to *reason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*to = reason{err, time.Now()}
}

// met is the newest refusal; without one, a name that does not resolve; else nil.
func (s *strangers) met() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range []reason{s.refused, s.nowhere} {
		if r.err != nil && time.Since(r.at) <= recently {
			return r.err
		}
	}
	return nil
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

// dialMember connects to another node, for Raft and for the node RPC.
func (n *Node) dialMember(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.net.Dial(ctx, "tcp", addr, nil)
	var name *net.DNSError
	if errors.As(err, &name) {
		err = fmt.Errorf("setting cluster.peers: the host of %s does not resolve; mend the setting, or that node's cluster.advertise_addr: %w", addr, err)
		n.status.note(&n.status.nowhere, err)
	}
	return c, err
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
		Call: n.plane.client.Call, ID: n.id, Raft: n.advertised(), Own: []string{own}, Peers: map[string]string{},
		Folder: folder, Dir: n.raftDir(), First: first(c, n.id),
	}
	for _, p := range c.Peers {
		id, addr, _ := strings.Cut(p, "@")
		reached, err := rpcOf(addr, "")
		switch {
		case err != nil:
		case id != n.id:
			m.Peers[id] = reached
		case reached != own:
			m.Own = append(m.Own, reached)
		}
	}
	return m.Ask(ctx)
}
