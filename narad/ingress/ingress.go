package ingress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/seglog"
	"narad.example/narad/vfs"
)

// Committer commits records to one partition, on this node or over the peer plane. Nil means that they are committed (or
// were already); ErrFrozen and ErrOwnerDead are told apart from other errors. It may keep nothing of recs.
type Committer interface {
	Commit(ctx context.Context, topicID string, partition int, recs []partition.Record) error
}

// Confirmer asks the Raft leader, behind a barrier, whether a topic incarnation is gone (broker.md, Produce).
type Confirmer interface {
	Gone(ctx context.Context, topicID string) (bool, error)
}

// Rerouter names a live partition of the topic for records whose own partition fails (BRK-02); false when there is none.
type Rerouter interface {
	Sibling(topicID string, partition int) (int, bool)
}

// State is what ingress reads of the metadata.
type State interface {
	Topic(name string) (meta.Topic, bool)
	TopicByID(id string) (meta.Topic, bool)
}

// Observer counts. Every method is called from many goroutines at once and must not block.
type Observer interface {
	// Accepted: one produce was answered well.
	Accepted(records int, payloadBytes int64)
	// Rejected: a produce was refused because of its topic; reason is schema, delayed_child or remote_child.
	Rejected(topic, reason string)
	// Committed: records are in their partition.
	Committed(topic string, partition, records int)
	// Dropped: records of a topic incarnation that is confirmed gone.
	Dropped(topic string, records int)
	// Failed: the write-ahead log takes no more records.
	Failed()
}

// Errors that a Committer may return, wrapped or not.
var (
	// ErrFrozen: the partition is being moved. Does not count toward RerouteAfter (BRK-02).
	ErrFrozen = errors.New("ingress: the partition is frozen")
	// ErrOwnerDead: the partition's owner is marked dead. Reroutes at once (broker.md, Produce).
	ErrOwnerDead = errors.New("ingress: the owner of the partition is dead")
)

// Options of an Ingress. Gone, Reroute, Validate, Logger and Observer may be nil: then nothing is dropped, rerouted,
// validated, logged, counted.
type Options struct {
	FS           vfs.FS
	Dir          string           // of the write-ahead log; the checkpoint stands in the same directory
	SegmentBytes int64            // 0 is seglog's default
	Preallocate  bool             // reserve a segment's room when it is begun (storage.ingress_wal_prealloc)
	Now          func() time.Time // the wall clock that records are stamped by; nil is time.Now
	State        State
	Commit       Committer
	Gone         Confirmer
	Reroute      Rerouter
	// Validate checks a payload against the schema of a topic that has one; its error is a *wire.Problem without the "message N: ".
	Validate func(ctx context.Context, t meta.Topic, payload []byte) error
	Logger   *slog.Logger
	Observer Observer
}

// Ingress is the ingress of one node.
type Ingress struct {
	o       Options
	log     *seglog.Log
	backlog *backlog
	d       *dispatcher

	mu   sync.Mutex // guards next
	next map[string]uint64
}

// Open opens the write-ahead log and counts what waits in it. Run then dispatches. An error of seglog (ErrDamaged) passes
// through: such a log is a person's to look at.
func Open(o Options) (*Ingress, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = silent{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.FS.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("ingress: %w", err)
	}
	log, err := seglog.Open(seglog.Options{FS: o.FS, Dir: o.Dir, SegmentBytes: o.SegmentBytes, Preallocate: o.Preallocate, OnTorn: func(path string, at, bytes int64) {
		o.Logger.Warn("the ingress WAL ended in a torn write that nobody was answered for; it was cut and a copy kept beside it",
			"file", path, "offset", at, "bytes", bytes)
	}})
	if err != nil {
		return nil, fmt.Errorf("ingress: %w", err)
	}
	i := &Ingress{o: o, log: log, backlog: newBacklog(), next: map[string]uint64{}}
	k, err := openKeeper(o, log)
	if err == nil {
		err = i.recover(k.synced)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	i.d = newDispatcher(o, log, i.backlog, k)
	return i, nil
}

// recover counts the records from the checkpoint on.
func (i *Ingress) recover(from int64) error {
	var buf seglog.Buffer
	for from < i.log.Next() {
		frames, err := i.log.Read(from, chunkFrames, chunkBytes, &buf)
		if err != nil {
			return fmt.Errorf("ingress: %w", err)
		}
		if len(frames) == 0 {
			return nil
		}
		for _, f := range frames {
			r, err := decode(f.Body)
			if err != nil {
				return fmt.Errorf("%w: sequence %d", err, f.Seq)
			}
			i.backlog.recovered(string(r.topicID), 1)
		}
		from = frames[len(frames)-1].Seq + 1
	}
	return nil
}

// Run dispatches until ctx ends, then waits for the commits in flight (which the same ctx ends) and makes the checkpoint
// durable. It returns nil after ctx ended, an error when the log holds a frame that is no record.
func (i *Ingress) Run(ctx context.Context) error { return i.d.run(ctx) }

// Backlog is the exact number of records of a topic incarnation that were taken in and are not committed (UNS-01).
func (i *Ingress) Backlog(topicID string) int64 { return i.backlog.of(topicID) }

// BacklogTotal is Backlog over all topics.
func (i *Ingress) BacklogTotal() int64 { return i.backlog.sum() }

// Failed is why the write-ahead log takes no more records until the next start, nil while it does. A full disk is no failure.
func (i *Ingress) Failed() error { return i.log.Failed() }

// Drain refuses produces from now on and returns once everything taken in is committed, or with ctx's error. Run must be
// running.
func (i *Ingress) Drain(ctx context.Context) error {
	i.backlog.refuse()
	return i.backlog.waitEmpty(ctx)
}

// Decommission refuses produces, or takes them again when it was called off; what a Drain refuses stays refused. Once it has returned,
// BacklogTotal counts every record that was and will be taken in.
func (i *Ingress) Decommission(yes bool) { i.backlog.leaves(yes) }

// Close closes the log. Run must have returned; a produce afterwards fails.
func (i *Ingress) Close() error {
	i.backlog.refuse()
	return errors.Join(i.d.keeper.close(), i.log.Close())
}

type silent struct{}

func (silent) Accepted(int, int64)        {}
func (silent) Rejected(string, string)    {}
func (silent) Committed(string, int, int) {}
func (silent) Dropped(string, int)        {}
func (silent) Failed()                    {}
