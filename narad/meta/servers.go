package meta

import (
	"context"
	"slices"

	"github.com/hashicorp/raft"

	"narad.example/narad/wire"
)

// Server is one node of Raft.
type Server struct {
	ID    string
	Addr  string // its Raft address
	Waits bool   // follows the log and has no vote yet; those of the first configuration have one
}

// MostVoters is how many nodes vote at most (BRK-07); more would make each write slower and the cluster no safer.
const MostVoters = 5

// Servers returns the Raft servers of the latest configuration, voters or not, nil when it is not known.
func (s *Store) Servers() []Server {
	f := s.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return serversOf(f.Configuration())
}

func serversOf(c raft.Configuration) (out []Server) {
	for _, v := range c.Servers {
		out = append(out, Server{ID: string(v.ID), Addr: string(v.Address), Waits: v.Suffrage != raft.Voter})
	}
	return out
}

// serves tells whether a node is in Raft. A record of another one would come back after its decommission.
func (s *Store) serves(id string) bool {
	return slices.ContainsFunc(s.Servers(), func(v Server) bool { return v.ID == id })
}

// AddServer lets a node follow the log, without a vote. One that is there at this address already is no error. Refusals are Conflict:
// another node has the ID, or the address. The error is a *wire.Problem or ErrNotLeader.
func (s *Store) AddServer(ctx context.Context, id, addr string) error {
	return s.reconfigure(ctx, func(now []Server) (raft.Future, error) {
		for _, v := range now {
			switch {
			case v.ID == id && v.Addr == addr:
				return nil, nil
			case v.ID == id:
				return nil, wire.Refuse(wire.Conflict, "node %s of this cluster is at %s: choose another cluster.node_id, or decommission that one first", id, v.Addr)
			case v.Addr == addr:
				return nil, wire.Refuse(wire.Conflict, "node %s of this cluster is at %s already: see cluster.peers and cluster.advertise_addr", v.ID, addr)
			}
		}
		return s.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(addr), 0, enterTimeout), nil
	})
}

// Promote gives a server its vote. One that has it, or is gone, is no error. The error is a *wire.Problem or ErrNotLeader.
func (s *Store) Promote(ctx context.Context, id string) error {
	return s.reconfigure(ctx, func(now []Server) (raft.Future, error) {
		i := slices.IndexFunc(now, func(v Server) bool { return v.ID == id && v.Waits })
		if i < 0 {
			return nil, nil
		}
		return s.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(now[i].Addr), 0, enterTimeout), nil
	})
}

// RemoveServer takes a server out of Raft; it must not be this node. One that is gone is no error. The error is a *wire.Problem or
// ErrNotLeader.
func (s *Store) RemoveServer(ctx context.Context, id string) error {
	return s.reconfigure(ctx, func(now []Server) (raft.Future, error) {
		if !slices.ContainsFunc(now, func(v Server) bool { return v.ID == id }) {
			return nil, nil
		}
		return s.raft.RemoveServer(raft.ServerID(id), 0, enterTimeout), nil
	})
}

// reconfigure makes one change of the configuration, decided by what the one before it left: two at once would be decided by what neither of
// them left, and Raft tells nobody the index that its own compare-and-set is by.
func (s *Store) reconfigure(ctx context.Context, change func(now []Server) (raft.Future, error)) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return wire.Refuse(wire.Unavailable, "another change of the members is under way; try again").After(second)
	}
	if !s.IsLeader() || !s.enter() {
		<-s.turn
		return ErrNotLeader
	}
	future, err := change(s.Servers())
	if future == nil || err != nil {
		s.proposed.Done()
		<-s.turn
		return err
	}
	return s.await(ctx, turned{future, s.turn})
}

// turned gives the turn up when the change has ended, whether somebody still waits for it or not.
type turned struct {
	raft.Future
	turn <-chan struct{}
}

// Error is called once.
func (t turned) Error() error {
	defer func() { <-t.turn }()
	return t.Future.Error()
}

// StepDown hands the lead to another voter. Without one, or on a node that does not lead, it is ErrNotLeader.
func (s *Store) StepDown(ctx context.Context) error {
	if !s.IsLeader() || !s.enter() {
		return ErrNotLeader
	}
	return s.await(ctx, s.transfer())
}

// transfer leaves the choice to Raft, which takes a voter that lacks nothing, but not while one is away: Raft would not know, and choose that
// one again and again in a cluster where nothing is written.
func (s *Store) transfer() raft.Future {
	var away bool
	var to *Server
	for _, v := range s.Servers() {
		switch {
		case v.Waits || v.ID == s.id || s.reach == nil:
		case s.reach.isAway(raft.ServerID(v.ID), s.Term()):
			away = true
		default:
			to = &v
		}
	}
	if !away || to == nil {
		return s.raft.LeadershipTransfer()
	}
	return s.raft.LeadershipTransferToServer(raft.ServerID(to.ID), raft.ServerAddress(to.Addr))
}
