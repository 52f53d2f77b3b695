package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"narad.example/narad/cluster"
	"narad.example/narad/config"
	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/queue"
	"narad.example/narad/wire"
)

// errTLSFiles is the cause when the Raft TLS files cannot be used.
var errTLSFiles = errors.New("the file holds no usable certificate")

// openMetadata starts Raft and, with peers, the node RPC, and waits until a single node leads.
func (n *Node) openMetadata(ctx context.Context) error {
	dir := n.raftDir()
	c := n.cfg.Cluster
	o := meta.Options{
		NodeID: n.id, Dir: dir, Logger: n.log, NoSync: n.o.Fast, SnapshotThreshold: c.RaftSnapshotThreshold,
		SnapshotInterval: time.Duration(c.RaftSnapshotInterval), TrailingLogs: c.RaftTrailingLogs,
	}
	if n.o.Older {
		o.Newest = meta.NewestOlder
		n.log.Warn("this node poses as a release before remotes", slog.Int("newest_type", int(o.Newest)))
	}
	folder, err := meta.Look(dir)
	if err != nil {
		return fmt.Errorf("opening the metadata in %s: %w", dir, err)
	}
	if folder.Node != "" && folder.Node != n.id {
		return otherNode(dir, folder.Node, n.id)
	}
	if len(c.Peers) == 0 {
		o.Bootstrap = []meta.Server{{ID: n.id, Addr: c.Addr}}
	} else if err = n.openPeers(ctx, &o, folder); err != nil {
		return err
	}
	store, err := meta.Open(o)
	if err != nil {
		if o.Transport != nil {
			_ = o.Transport.Close()
		}
		return fmt.Errorf("opening the metadata in %s: %w", dir, err)
	}
	n.meta = store
	n.status.opened.Store(store)
	if len(c.Peers) > 0 {
		return n.servePeers()
	}
	for _, s := range store.Servers() {
		if s.ID != n.id {
			return otherNode(dir, s.ID, n.id)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	if err := waitLeader(ctx, store); err != nil {
		return fmt.Errorf("the single node did not become leader: %w", err)
	}
	n.openMembership()
	n.register(meta.Member{ID: n.id, RaftAddr: c.Addr})
	return n.waitRegistered(ctx)
}

func otherNode(dir, theirs, mine string) error {
	return fmt.Errorf("setting cluster.node_id: %s holds the metadata of node %s, not of %s", dir, theirs, mine)
}

// waitRegistered returns when this node's member record is there and of its release, so that the release gate is open once the API answers.
func (n *Node) waitRegistered(ctx context.Context) error {
	for {
		changed := n.meta.Changed()
		if m, ok := n.meta.Member(n.id); ok && m.Applies == n.meta.Newest() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("registering this node: %w", ctx.Err())
		case <-changed:
		}
	}
}

// raftDir is the folder of the Raft log, on the real disk.
func (n *Node) raftDir() string {
	if n.o.RaftDir != "" {
		return n.o.RaftDir
	}
	return filepath.Join(n.cfg.Storage.DataDir, "raft")
}

// register keeps this node's member record as it should be; without it the release gate stays closed (WRT-02).
func (n *Node) register(m meta.Member) {
	m.Applies = n.meta.Newest()
	r := &cluster.Registrar{Meta: n.meta, Member: m, Logger: n.log}
	n.loops.run("registration", r.Run)
	if !n.o.Older {
		n.loops.run("cluster ID", (&cluster.Namer{Meta: n.meta, Logger: n.log}).Run)
	}
}

// waitLeader returns when a single node leads and has applied its log.
func waitLeader(ctx context.Context, s *meta.Store) error {
	for {
		err := s.Barrier(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// openPeers makes Raft's transport and the client of the node RPC, and asks the peers whether this node may start.
func (n *Node) openPeers(ctx context.Context, o *meta.Options, folder meta.Folder) error {
	c := n.cfg.Cluster
	raftTLS, err := n.raftTLS()
	if err != nil {
		return err
	}
	advertise := n.advertised()
	for _, p := range c.Peers {
		id, addr, _ := strings.Cut(p, "@")
		if first(c, n.id) && first(c, id) { // who is not one of the first waits to be let in
			o.Bootstrap = append(o.Bootstrap, meta.Server{ID: id, Addr: addr})
		}
	}
	n.plane.client = peer.NewClient(peer.ClientOptions{
		Secret: n.o.Secrets.ClusterSecret, Cluster: n.clusterOf(folder), Dial: n.dialMember,
	})
	o.Forward = cluster.NewForwarder(n.plane.client)
	if err = n.meet(ctx, folder); err != nil {
		return err
	}
	l, err := n.net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("setting cluster.addr: %w", err)
	}
	o.Transport, o.Strangers = &stream{Listener: l, dial: n.dialMember, advertise: advertise, tls: raftTLS, failed: n.status.meets}, n.status.meets
	return nil
}

// first tells whether a node is one of those that make the cluster.
func first(c config.Cluster, id string) bool {
	return len(c.InitialMembers) == 0 || slices.Contains(c.InitialMembers, id)
}

// servePeers answers the other nodes and registers this one.
func (n *Node) servePeers() error {
	c := n.cfg.Cluster
	rpcAddr, err := rpcOf(c.Addr, c.RPCAddr)
	if err != nil {
		return err
	}
	l, err := n.net.Listen("tcp", rpcAddr)
	if err != nil {
		return fmt.Errorf("setting cluster.rpc_addr: %w", err)
	}
	n.plane.beats = cluster.NewHeartbeats(n.id, n.meta, n.plane.client)
	n.plane.server = peer.NewServer(peer.ServerOptions{Secret: n.o.Secrets.ClusterSecret, Cluster: n.clusterOf(meta.Folder{}), Logger: n.log})
	n.plane.server.Handle(cluster.OpPropose, cluster.HandlePropose(n.meta))
	n.plane.server.Handle(cluster.OpHeartbeat, n.plane.beats.Handle)
	n.plane.server.Handle(cluster.OpJoin, cluster.HandleJoin(n.meta))
	n.handlePeers(n.plane.server)
	n.loops.run("node RPC", func(context.Context) error { return n.plane.server.Serve(l) })
	n.loops.run("heartbeats", n.plane.beats.Run)
	n.openMembership()
	n.loops.run("controller", n.plane.controller.Run)
	raftAddr := n.advertised()
	reached, err := rpcOf(raftAddr, "")
	if err != nil {
		return err
	}
	if len(n.meta.Servers()) == 0 { // no state, and not one of the first members; one that has left keeps its state and stays away
		n.join(raftAddr)
	}
	n.register(meta.Member{ID: n.id, RaftAddr: raftAddr, RPCAddr: reached})
	return nil
}

// join asks the other peers to let this node in.
func (n *Node) join(raftAddr string) {
	j := &cluster.Joiner{Meta: n.meta, Call: n.plane.client.Call, ID: n.id, Addr: raftAddr, Logger: n.log}
	for _, p := range n.cfg.Cluster.Peers {
		id, addr, _ := strings.Cut(p, "@")
		if reached, err := rpcOf(addr, ""); err == nil && id != n.id {
			j.Peers = append(j.Peers, reached)
		}
	}
	n.loops.run("joining", j.Run)
}

// rpcOf is the address of the node RPC: the setting, or the port above Raft's.
func rpcOf(raftAddr, setting string) (string, error) {
	if setting != "" {
		return setting, nil
	}
	host, port, err := net.SplitHostPort(raftAddr)
	if err != nil {
		return "", fmt.Errorf("setting cluster.addr: %w", err)
	}
	p, err := strconv.Atoi(port)
	if err != nil {
		return "", fmt.Errorf("setting cluster.addr: %w", err)
	}
	return net.JoinHostPort(host, strconv.Itoa(p+1)), nil
}

// topicsOf shows topics to the queue.
type topicsOf struct {
	state *meta.State
	owned *owned
}

// Lookup returns what a consumer needs of a topic.
func (t topicsOf) Lookup(name string) (queue.TopicInfo, error) {
	rec, ok := t.state.Topic(name)
	if !ok {
		return queue.TopicInfo{}, wire.Refuse(wire.NotFound, "topic %q does not exist", name)
	}
	if rec.IsStub() {
		return queue.TopicInfo{}, wire.Refuse(wire.Conflict, "remote child %q lives on remote %s; consume it there", name, rec.Remote.Remote)
	}
	return queue.TopicInfo{
		ID: rec.ID, Name: rec.Name, Partitions: rec.Partitions, Owned: t.owned.serving(&rec),
		Settings: queue.Settings{
			VisibilityTimeout: time.Duration(rec.VisibilityTimeoutMS) * time.Millisecond,
			MaxInFlight:       rec.MaxInFlight, MaxAckedAhead: rec.MaxAckedAhead,
		},
	}, nil
}
