package meta

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"

	"narad.example/narad/wire"
)

// ErrFailed is the cause of every refusal of a replica that met an entry it cannot apply.
var ErrFailed = errors.New("meta: the replica has stopped")

// fsm is Raft's view of the state. Raft calls it from one goroutine.
type fsm struct {
	state  *State
	newest EntryType // nothing above it is applied
	log    *slog.Logger
	keep   func(cluster string) // told the cluster's ID when it may be new; may be nil

	mu     sync.Mutex // guards failed
	failed error
	broken chan struct{} // closed when failed is set
}

func newFSM(s *State, newest EntryType, log *slog.Logger) *fsm {
	return &fsm{state: s, newest: newest, log: log, broken: make(chan struct{})}
}

// decode is Decode for the release that this replica is of.
func (f *fsm) decode(data []byte) (Entry, error) {
	if len(data) > 0 && EntryType(data[0]) > f.newest {
		return nil, fmt.Errorf("%w: type %d", ErrUndecodable, data[0])
	}
	return Decode(data)
}

func (f *fsm) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// fail stops the replica. What stands in the entry never reaches the log: it may be a hash or a ciphertext.
func (f *fsm) fail(index uint64, cause error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("%w at index %d: %w", ErrFailed, index, cause)
		close(f.broken)
		f.log.Error("metadata replica stopped: an entry cannot be applied by this release; upgrade this node",
			"index", index, "cause", cause)
	}
	return f.failed
}

// Apply returns nil, a *wire.Problem, or an error that wraps ErrFailed.
func (f *fsm) Apply(l *raft.Log) any {
	if err := f.err(); err != nil {
		return err
	}
	e, err := f.decode(l.Data)
	if err != nil {
		return f.fail(l.Index, err)
	}
	err = f.state.ApplyIn(l.Term, l.Index, e)
	var refusal *wire.Problem
	if err != nil && !errors.As(err, &refusal) {
		return f.fail(l.Index, err)
	}
	if e.Type() == TypeNameCluster && f.keep != nil {
		f.keep(f.state.ClusterID())
	}
	return err
}

// Snapshot refuses after a failure: such a snapshot would claim entries that were never applied.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.state.snapshot(), nil
}

// Restore replaces the state: at a start by this node's own snapshot, later by one that the leader sent.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer func() { _ = r.Close() }()
	if err := f.err(); err != nil {
		return err
	}
	if err := f.state.restore(r, f.newest); err != nil {
		return f.fail(f.state.Applied(), err)
	}
	if f.keep != nil {
		f.keep(f.state.ClusterID())
	}
	f.log.Info("metadata restored from a snapshot", slog.Uint64("index", f.state.Applied()))
	return nil
}
