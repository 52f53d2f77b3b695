package node

import (
	"context"
	"errors"

	"narad.example/narad/audit"
	"narad.example/narad/cluster"
	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// openLinks builds the writes of remotes and remote children.
func (n *Node) openLinks(context.Context) error {
	n.remote.links = link.New(link.Options{
		NodeID: n.id, State: n.meta.State, Raft: n.meta, Leader: n, Vault: n.remote.vault, Keys: n.remote.keys,
		Guard: n.remote.guard, Fan: starts{n}, Backlog: backlogs{n}, Lag: lags{n}, Cursors: stuck{n}, Members: holders{n}, Audit: audit.New(n.log),
		Admin: n.isAdmin, Refused: n.remote.senders.Refused, Health: n.remote.health, Now: n.o.Now,
		Unaudited: n.o.Unaudited,
		View:      func(stub meta.Topic) wire.Topic { return cluster.View(stub, nil) },
		Settings: link.Settings{
			Security: n.cfg.Security.Enabled, APIHopEncrypted: n.cfg.Remotes.APIHopEncrypted,
			LegacyClusterAuth: n.cfg.Security.AllowLegacyClusterAuth, RaftTLS: n.cfg.Cluster.TLSCertFile != "",
		},
	})
	n.loops.run("audit trail", n.remote.links.FollowTrail)
	return nil
}

// isAdmin tells whether a user of the metadata is an admin, which the leader asks again (WRT-01).
func (n *Node) isAdmin(user string) bool {
	u, ok := n.meta.User(user)
	if !ok {
		return false
	}
	for _, g := range u.Grants {
		if g.Action == wire.ActionAdmin {
			return true
		}
	}
	return u.Root
}

// RemoteWrite carries a write to the leader: to this node when it leads, else over the node RPC (link.Leader). It is sent
// once; a cluster that elects is waited for, as by other writes of metadata. A leader of a release that does not know it is a refusal that names
// the leader.
func (n *Node) RemoteWrite(ctx context.Context, body []byte) (answer []byte, err error) {
	err = n.meta.WithLeader(ctx, func() (err error) {
		answer, err = n.writeRemote(ctx, body)
		return err
	})
	return answer, err
}

// writeRemote asks the leader of this moment; meta.ErrNotLeader says that there is none.
func (n *Node) writeRemote(ctx context.Context, body []byte) ([]byte, error) {
	if n.meta.IsLeader() {
		return n.remote.links.ServeRemoteWrite(ctx, body)
	}
	leader, addr, ok := n.meta.Leader()
	if !ok || n.plane.client == nil {
		return nil, meta.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(ctx, remoteWriteWait)
	defer cancel()
	answer, err := n.plane.client.Call(ctx, addr, link.OpRemoteWrite, body)
	switch {
	case errors.Is(err, peer.ErrUnknownOp): // WRT-08; nothing was changed there
		return nil, meta.OldRelease(leader)
	case errors.Is(err, peer.ErrUnreachable): // it was not sent: a leader that died leads until the others notice
		return nil, meta.ErrNotLeader
	}
	return answer, err
}

// serveRemoteWrite answers another node's RemoteWrite. Until this node is whole it refuses.
func (n *Node) serveRemoteWrite(ctx context.Context, body []byte) ([]byte, error) {
	if !n.front.whole.Load() {
		return nil, wire.Refuse(wire.Unavailable, "the leader is starting; nothing was changed").After(noLeaderRetry)
	}
	return n.remote.links.ServeRemoteWrite(ctx, body)
}
