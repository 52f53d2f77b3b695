package meta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// Options of a Store. NodeID, Dir and Logger are needed.
type Options struct {
	NodeID     string
	Dir        string           // bbolt and the snapshots live here; made when absent
	Bootstrap  []Server         // the first configuration, this node included; used only while there is no state. None waits to be added
	Transport  raft.StreamLayer // nil only for a cluster of this one node
	Forward    Forwarder        // nil only for a cluster of this one node
	Logger     *slog.Logger
	Strangers  func(error)   // told of each Raft connection that was refused because of who is at its other end; may be nil
	LeaderWait time.Duration // how long Propose waits for a leader; 0 is 3 s
	NoSync     bool          // leaves fsync out; for simulations, where a power loss of the metadata is no subject
	Newest     EntryType     // the newest entry type that this replica applies; 0 is NewestType, NewestOlder poses as a release before remotes

	// The raft_* settings of broker.md; 0 is Raft's own default.
	SnapshotThreshold uint64
	SnapshotInterval  time.Duration
	TrailingLogs      uint64
}

// Store is the metadata behind Raft. The embedded State is this node's replica; reads never leave the node.
type Store struct {
	*State
	id         string
	leaderWait time.Duration
	forward    Forwarder
	raft       *raft.Raft
	bolt       *raftboltdb.BoltStore
	readLog    func(index uint64, l *raft.Log) error
	streams    *streams  // nil without a transport
	reach      *reaching // the same
	greeter    *greeter
	fsm        *fsm
	log        *slog.Logger

	closing   chan struct{}
	stopped   sync.WaitGroup // the goroutine of follow
	proposed  sync.WaitGroup // proposals in Raft
	spreading atomic.Int64   // writes since spread began, 0 while it rests
	turn      chan struct{}  // holds an element while the configuration is being changed

	mu          sync.Mutex // guards the rest
	refusing    bool       // no proposal enters Raft any more
	closed      bool
	quiet       span // of the log, from what was applied on, that holds nothing of ours
	leaderMoved chan struct{}
}

// singleVoter is the election timing of a cluster of one: nobody else can lead, so there is nothing to wait for.
const singleVoter = 50 * time.Millisecond

// recentEntries is how many of the last log entries are kept in memory: a leader looks its last one up with each message to each follower, some
// twenty times a second while nothing happens.
const recentEntries = 64

// Open opens the replica of this node and starts Raft. It returns before there is a leader.
func Open(o Options) (*Store, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the metadata folder: %w", err)
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(o.Dir, "raft.db"), NoSync: o.NoSync, BoltOptions: &bbolt.Options{Timeout: 5 * time.Second},
	})
	if err != nil {
		return nil, fmt.Errorf("open the Raft log: %w", err)
	}
	s, err := start(o, bolt)
	if err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	return s, nil
}

func start(o Options, bolt *raftboltdb.BoltStore) (*Store, error) {
	hlog := newRaftLog(o.Logger)
	snaps, err := raft.NewFileSnapshotStoreWithLogger(o.Dir, 2, hlog)
	if err != nil {
		return nil, fmt.Errorf("open the snapshots: %w", err)
	}
	s := &Store{
		State: NewState(), id: o.NodeID, leaderWait: o.LeaderWait, forward: o.Forward, bolt: bolt, readLog: bolt.GetLog, log: o.Logger,
		closing: make(chan struct{}), leaderMoved: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	if s.leaderWait == 0 {
		s.leaderWait = 3 * time.Second
	}
	s.fsm = newFSM(s.State, cmp.Or(o.Newest, NewestType), o.Logger)
	cluster, err := remembered(bolt, keyCluster)
	if err != nil {
		return nil, err
	}
	s.greeter = &greeter{node: o.NodeID, cluster: cluster, log: o.Logger, strangers: o.Strangers}
	if s.fsm.newest >= TypeNameCluster { // an older release writes nothing down and greets nobody
		if err = remember(bolt, keyNode, o.NodeID); err != nil {
			return nil, err
		}
		s.fsm.keep = s.keep
	}
	conf, err := configure(o, s.fsm, bolt, snaps)
	if err != nil {
		return nil, err
	}
	recent, err := raft.NewLogCache(recentEntries, logs{bolt})
	if err != nil {
		return nil, err
	}
	transport := s.transport(o)
	s.raft, err = raft.NewRaft(conf, s.fsm, recent, bolt, snaps, transport)
	if err != nil {
		if c, ok := transport.(raft.WithClose); ok {
			err = errors.Join(err, c.Close()) // it accepts connections already
		}
		return nil, fmt.Errorf("start Raft: %w", err)
	}
	s.greeter.servers.Store(s.raft)
	if s.reach != nil {
		s.reach.node.Store(s.raft)
	}
	s.follow()
	return s, nil
}

func (s *Store) transport(o Options) raft.Transport {
	if o.Transport == nil {
		addr := raft.ServerAddress(o.NodeID)
		for _, b := range o.Bootstrap {
			if b.ID == o.NodeID {
				addr = raft.ServerAddress(b.Addr)
			}
		}
		_, t := raft.NewInmemTransport(addr)
		return t
	}
	layer := o.Transport
	if s.fsm.newest >= TypeNameCluster {
		layer = &greeted{StreamLayer: layer, by: s.greeter}
	}
	s.streams = newStreams(layer)
	s.reach = &reaching{ending: s.streams.ending, away: make(map[raft.ServerID]absence)}
	s.reach.NetworkTransport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s.streams, MaxPool: 3, Timeout: 5 * time.Second, Logger: newRaftLog(o.Logger),
	})
	return s.reach
}

// configure bootstraps a first start and chooses the timing by the number of voters that the log or the first configuration has.
func configure(o Options, f *fsm, bolt *raftboltdb.BoltStore, snaps raft.SnapshotStore) (*raft.Config, error) {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(o.NodeID)
	conf.Logger = newRaftLog(o.Logger)
	conf.NoLegacyTelemetry = true
	conf.ShutdownOnRemove = false
	if o.SnapshotThreshold > 0 {
		conf.SnapshotThreshold = o.SnapshotThreshold
	}
	if o.SnapshotInterval > 0 {
		conf.SnapshotInterval = o.SnapshotInterval
	}
	if o.TrailingLogs > 0 {
		conf.TrailingLogs = o.TrailingLogs
	}
	_, unused := raft.NewInmemTransport(raft.ServerAddress(o.NodeID))
	exists, err := raft.HasExistingState(bolt, bolt, snaps)
	if err != nil {
		return nil, fmt.Errorf("look for Raft state: %w", err)
	}
	var servers raft.Configuration
	switch {
	case exists:
		probe := *conf
		probe.NoSnapshotRestoreOnStart = true
		if servers, err = raft.GetConfiguration(&probe, f, bolt, bolt, snaps, unused); err != nil {
			return nil, fmt.Errorf("read the Raft configuration: %w", err)
		}
	case len(o.Bootstrap) > 0:
		for _, b := range o.Bootstrap {
			servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(b.ID), Address: raft.ServerAddress(b.Addr)})
		}
		if err = raft.BootstrapCluster(conf, bolt, bolt, snaps, unused, servers); err != nil {
			return nil, fmt.Errorf("bootstrap Raft: %w", err)
		}
	}
	if len(servers.Servers) == 1 {
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = singleVoter, singleVoter, singleVoter
	}
	return conf, nil
}

// follow starts the loop that wakes those who wait for a leader, and that stops Raft when the state machine fails.
func (s *Store) follow() {
	seen := make(chan raft.Observation, 1)
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	s.raft.RegisterObserver(observer)
	s.stopped.Go(func() {
		defer s.raft.DeregisterObserver(observer)
		for {
			select {
			case <-seen:
				s.wakeLeaderWaiters()
			case <-s.fsm.broken:
				// A replica that cannot apply must neither lead nor vote a snapshot of its own into being.
				s.shutRaft()
				return
			case <-s.closing:
				return
			}
		}
	})
}

func (s *Store) wakeLeaderWaiters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.leaderMoved)
	s.leaderMoved = make(chan struct{})
}

// shutRaft ends Raft and waits. Proposals in Raft end first: Raft does not answer those that it meets while it shuts down, and
// answers all others within a lease.
func (s *Store) shutRaft() {
	s.mu.Lock()
	s.refusing = true
	s.mu.Unlock()
	s.proposed.Wait()
	done := s.raft.Shutdown()
	if s.streams != nil {
		s.streams.closeAll()
	}
	// A shutdown's future has no other error than "already shut down".
	_ = done.Error()
}

// Close stops Raft, ends its connections and waits for every goroutine. Waiting proposals get Unavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	s.stopped.Wait()
	s.shutRaft()
	if err := s.bolt.Close(); err != nil {
		return fmt.Errorf("close the Raft log: %w", err)
	}
	return nil
}

// Failed is nil while the replica applies entries, else why it stopped; the error wraps ErrFailed.
func (s *Store) Failed() error { return s.fsm.err() }

// Newest is the newest entry type that this replica applies, which its member record tells the others (WRT-02).
func (s *Store) Newest() EntryType { return s.fsm.newest }

// IsLeader tells whether this node leads, as far as it knows.
func (s *Store) IsLeader() bool { return s.raft.State() == raft.Leader }

// Term is Raft's, as this node knows it.
func (s *Store) Term() uint64 { return s.raft.CurrentTerm() }

// LeaderMoved is closed when this node hears of another leader, itself and none included. Take it before reading who leads, then no change
// is missed.
func (s *Store) LeaderMoved() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaderMoved
}

// RaftState is leader, candidate, follower or shutdown (the label of narad_raft_state).
func (s *Store) RaftState() string { return strings.ToLower(s.raft.State().String()) }

// Leader returns the leader that this node knows and its RPC address, which is empty until its member record has arrived.
func (s *Store) Leader() (id, rpcAddr string, ok bool) {
	_, leader := s.raft.LeaderWithID()
	if leader == "" {
		return "", "", false
	}
	m, _ := s.Member(string(leader))
	return string(leader), m.RPCAddr, true
}

// LastContact is the time since this node heard of a leader: 0 on the leader itself, the longest duration when it never did.
func (s *Store) LastContact() time.Duration {
	if s.IsLeader() {
		return 0
	}
	last := s.raft.LastContact()
	if last.IsZero() {
		return math.MaxInt64
	}
	return time.Since(last)
}

// Snapshot takes a snapshot now and cuts the log behind it.
func (s *Store) Snapshot() error {
	if err := s.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("take a snapshot: %w", err)
	}
	return nil
}

// contactLimit is how long ago a replica that counts as caught up may have heard of the leader (broker.md Metadata).
const contactLimit = 5 * time.Second

// CaughtUp tells whether the replica heard of a leader within 5 s and has applied everything it knows to be committed. A leader
// passes a Barrier as well before anything destructive.
func (s *Store) CaughtUp() bool {
	if s.fsm.err() != nil || s.LastContact() > contactLimit {
		return false
	}
	// Raft's own applied index runs ahead of the state machine, which gets entries over a channel. What counts is whether an
	// entry of ours stands between the state and the commit index; Raft's own entries never reach the state.
	commit := s.raft.CommitIndex()
	for i := commit; i > s.quietUpTo(); i-- {
		var l raft.Log
		err := s.readLog(i, &l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return s.raft.AppliedIndex() >= s.raft.CommitIndex() // below a snapshot, which holds applied entries only
		}
		if err != nil || l.Type == raft.LogCommand {
			return false
		}
	}
	s.mu.Lock()
	s.quiet = span{s.Applied(), commit}
	s.mu.Unlock()
	return true
}

// span is a part of the log between two indexes, the first one not in it.
type span struct{ from, to uint64 }

// quietUpTo is up to where nothing of ours is known to stand behind what has been applied. Raft's own entries, a barrier for each cursor that
// starts, would be read again by every look else, and there are thousands before a snapshot takes them.
func (s *Store) quietUpTo() uint64 {
	applied := s.Applied()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet.from == applied {
		return max(applied, s.quiet.to)
	}
	return applied
}

// WaitApplied returns when the entry of this index has been applied here, or with the context's error.
func (s *Store) WaitApplied(ctx context.Context, index uint64) error {
	for {
		changed := s.Changed()
		if s.Applied() >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return errClosed
		case <-s.fsm.broken:
			return s.fsm.err()
		}
	}
}
