package fanout

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/slots"
)

const (
	confirmRetry = time.Second // after the leader could not confirm a cursor
	reopenWait   = time.Second // after a partition was closed under its cursor; a deleted topic's cursor is ended within it
)

var errNoRemotes = errors.New("fanout: this node opens no remote children")

// spec is a cursor that should run.
type spec struct {
	parent, child meta.Topic
	partition     int
}

func (s spec) identity() identity {
	id := identity{
		parent: s.parent.Name, parentID: s.parent.ID, child: s.child.Name, epoch: s.child.AttachEpoch, partition: s.partition,
	}
	if s.child.Remote != nil {
		id.remote = s.child.Remote.Remote
	}
	return id
}

func (id identity) compare(o identity) int {
	return cmp.Or(strings.Compare(id.parent, o.parent), strings.Compare(id.child, o.child), cmp.Compare(id.partition, o.partition))
}

func (id identity) logger(l *slog.Logger) *slog.Logger {
	l = l.With("parent", id.parent, "partition", id.partition, "child", id.child)
	if id.remote != "" {
		l = l.With("remote", id.remote)
	}
	return l
}

// entry is one desired cursor from its start to its end: waiting for its forerunner, for the leader, for files, running.
type entry struct {
	spec     spec
	cancel   context.CancelFunc
	done     chan struct{}
	detached atomic.Bool // set before cancel: the cursor file goes with the attach (DEC-18)
	cursor   atomic.Pointer[cursor]
}

// start begins an entry. before is closed when the last cursor of the same place has ended (DEC-38); nil when there is none.
func (r *Runner) start(ctx context.Context, s spec, before <-chan struct{}) *entry {
	ctx, cancel := context.WithCancel(ctx)
	e := &entry{spec: s, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer cancel()
		if before != nil {
			<-before
		}
		log := s.identity().logger(r.o.Logger)
		r.live(ctx, e, log)
		if e.detached.Load() {
			r.forget(s, log)
		}
	}()
	return e
}

// live runs the entry until ctx ends. A partition that was closed under its cursor is opened again.
func (r *Runner) live(ctx context.Context, e *entry, log *slog.Logger) {
	if !r.confirm(ctx, e.spec, log) {
		return
	}
	for failed := false; ctx.Err() == nil; {
		c, err := r.open(e, log)
		if err != nil {
			if !failed {
				log.Error("the cursor cannot start, tried again every 30 s", "error", err) // DEC-10
			}
			failed = true
			sleep(ctx, faultRetry)
			continue
		}
		failed = false
		e.cursor.Store(c)
		c.run(ctx)
		e.cursor.Store(nil)
		sleep(ctx, reopenWait)
	}
}

// confirm waits until the leader confirms the cursor (CUR-17); false when ctx ended first.
func (r *Runner) confirm(ctx context.Context, s spec, log *slog.Logger) bool {
	if r.o.Confirm == nil {
		return ctx.Err() == nil
	}
	for failed := false; ; failed = true {
		ok, err := r.o.Confirm.Confirm(ctx, s.parent.ID, s.partition, s.child.Name, s.child.AttachEpoch)
		if ok && err == nil {
			return ctx.Err() == nil
		}
		if err != nil && !failed && ctx.Err() == nil {
			log.Warn("the cursor waits for the leader to confirm it", "error", err)
		}
		if !sleep(ctx, confirmRetry) {
			return false
		}
	}
}

// forget removes the cursor file of a detached child.
func (r *Runner) forget(s spec, log *slog.Logger) {
	name := fileName(r.o.Store.Dir(s.parent.ID, s.partition), s.child.Name)
	if err := removePosition(r.o.FS, name, s.child.AttachEpoch); err != nil {
		log.Error("the cursor file of a detached child could not be removed; no other attach will use it", "error", err)
	}
}

// open opens everything that a cursor needs.
func (r *Runner) open(e *entry, log *slog.Logger) (*cursor, error) {
	s := e.spec
	part, err := r.o.Store.Open(s.parent.ID, s.partition)
	if err != nil {
		return nil, err
	}
	id := s.identity()
	src := &source{
		part: part, partition: s.partition, pool: &r.pool, now: r.o.Now, delay: time.Duration(s.child.FanoutDelayMS) * time.Millisecond,
		bounds: bounds{records: r.o.MaxRecords, bytes: r.o.MaxBytes, linger: r.o.Linger},
	}
	if link := s.child.Remote; link != nil {
		src.lanes = max(1, link.Lanes)
		src.bounds = bounds{records: src.lanes * laneRecords, bytes: src.lanes * laneBytes, apart: r.o.Linger}
	}
	file, kept, verdict, err := openPosition(r.o.FS, fileName(r.o.Store.Dir(s.parent.ID, s.partition), s.child.Name))
	if err != nil {
		return nil, err
	}
	c := &cursor{id: id, src: src, file: file, log: log, observer: r.o.Observer, detached: &e.detached, durable: -1}
	at := c.startAt(s.child, kept, verdict)
	c.next.Store(at.next)
	if c.sink, err = r.openSink(s, id, at.marks, log); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

func (r *Runner) openSink(s spec, id identity, marks []int64, log *slog.Logger) (Sink, error) {
	if s.child.Remote == nil {
		return newLocalSink(id, r.o.Meta, r.o.Commit, log, r.o.Now), nil
	}
	if r.o.OpenRemote == nil {
		return nil, errNoRemotes
	}
	return r.o.OpenRemote(s.child, s.partition, marks)
}

// startAt decides where the cursor starts from what its file held.
func (c *cursor) startAt(child meta.Topic, kept position, v slots.Verdict) position {
	attach := child.StartOffset(c.id.partition)
	at := position{epoch: c.id.epoch, next: attach}
	switch {
	case v == slots.Missing:
	case v == slots.Damaged:
		at.next = max(attach, c.src.part.Oldest())
		c.log.Error("the cursor file is damaged, the cursor replays", "from", at.next) // CUR-14
	case kept.epoch != c.id.epoch:
		c.log.Info("the cursor file is of an earlier attach and not used", "from", at.next) // CUR-03
	default:
		at = kept
		c.durable, c.marked = kept.next, kept.marks != nil
	}
	if hw := c.src.part.HighWatermark(); at.next > hw {
		c.log.Error("the cursor stood above the high watermark and was set back", "position", at.next, "high_watermark", hw) // CUR-16
		at.next = hw
	}
	at.marks = c.usableMarks(at)
	return at
}

// usableMarks drops marks at or above the high watermark: no record stands there (CUR-16).
func (c *cursor) usableMarks(at position) []int64 {
	hw := c.src.part.HighWatermark()
	var marks []int64
	for i, m := range at.marks {
		if m < at.next || m >= hw || i >= c.src.lanes {
			continue
		}
		if marks == nil {
			marks = noMarks(c.src.lanes)
		}
		marks[i] = m
	}
	return marks
}
