package seglog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/narad/seglog/cycle"
	"narad.example/narad/vfs"
)

const (
	defaultSegmentBytes = 64 << 20
	groupBytes          = 8 << 20 // at most in one group, unless one batch alone is larger
	openFiles           = 4       // sealed segments of one log whose files stay open
)

// Options say where a log lies and how it behaves.
type Options struct {
	FS           vfs.FS // nil is the real disk
	Dir          string
	SegmentBytes int64 // a segment that has reached it is sealed; 0 is 64 MiB
	Start        int64 // the first sequence number when Dir holds no log yet
	Lazy         bool  // verify the frames of sealed segments when they are first read, not in Open
	Draft        bool  // Append does not sync until Settle; whoever does not come to Settle deletes the files, which may not open again
	Preallocate  bool  // reserve the room of a segment when it is begun, as far as the disk can; a sealed one gives back what it did not use

	OnSync func(time.Duration)                    // hears how long each sync of a group, or of a draft's segment, took, and those at once; may be nil
	OnTorn func(path string, offset, bytes int64) // hears that Open cut a torn tail; may be nil
}

func (o *Options) defaults() {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
}

// Log is an open log. Its methods may be called from any goroutine.
type Log struct {
	o       Options
	commits *cycle.Cycle[*request]
	group   []byte         // joins the batches of a group; the leader of the cycle owns it
	marks   []mark         // of the group in work; the leader owns it
	draft   bool           // the leader owns it, and the next: what is appended waits for Settle
	due     bool           // the leader owns it: a segment could not be begun, and its file may already say where the active one ends
	behind  chan struct{}  // held by each sync of a draft's segment that is under way, so that a slow disk holds the appends up
	syncing sync.WaitGroup // those syncs
	durable cycle.Signal
	next    atomic.Int64

	// mu guards the list, the segments in it and what follows; files may be opened and closed under it, never read or synced.
	mu      sync.Mutex
	list    []*segment // never empty; the last one is appended to
	doomed  []string   // files that DropBefore has yet to remove
	tick    int64
	failure error
	closed  bool
	touched time.Time // of the last read or append
	asleep  bool      // no file is open

	// dropping is held by the one DropBefore at work; it guards nothing else.
	dropping sync.Mutex
}

// request is what waits for a cycle: a batch to append, or the wish to seal the active segment, to settle a draft, or to close all files if the
// log has been idle for so long.
type request struct {
	batch  *Batch
	seal   bool
	settle bool
	rest   time.Duration
	first  int64
	err    error
}

func newLog(o Options, list []*segment) *Log {
	l := &Log{o: o, list: list, draft: o.Draft, behind: make(chan struct{}, openFiles), touched: time.Now()}
	l.next.Store(list[len(list)-1].next)
	l.commits = cycle.New(l.commit, func(r *request) int64 {
		if r.batch == nil {
			return 0
		}
		return int64(r.batch.Bytes())
	}, groupBytes)
	return l
}

// Append appends b and returns the sequence number of its first frame once all of it is on the disk, of a draft once it is written. Appends that come
// while another one is synced share the next write and sync. Errors are ErrFull, ErrFailed, ErrTooLarge, ErrClosed, or ctx's,
// which means that nothing was appended. Of a batch that ErrFailed answers some frames may be found by a later Open.
func (l *Log) Append(ctx context.Context, b *Batch) (first int64, err error) {
	if b.large {
		return 0, ErrTooLarge
	}
	if b.count == 0 {
		return l.Next(), nil
	}
	if b.spent {
		b.renew()
	}
	return l.do(ctx, &request{batch: b})
}

// Seal ends the active segment if it has frames, so that DropBefore may remove it.
func (l *Log) Seal(ctx context.Context) error {
	_, err := l.do(ctx, &request{seal: true})
	return err
}

func (l *Log) do(ctx context.Context, r *request) (int64, error) {
	if err := l.commits.Do(ctx, r); err != nil {
		if errors.Is(err, cycle.ErrClosed) {
			err = ErrClosed
		}
		return 0, err
	}
	return r.first, r.err
}

// commit is one cycle: it appends the batches of the requests as one group.
func (l *Log) commit(requests []*request) {
	err := l.Failed()
	if err == nil {
		err = l.commitGroup(requests)
	}
	for _, r := range requests {
		r.err = err
	}
}

func (l *Log) commitGroup(requests []*request) error {
	active := l.active()
	var buf []byte
	batches, bytes, wish, settle := 0, 0, false, false
	idle := time.Duration(0)
	for _, r := range requests {
		if r.batch == nil {
			wish, settle = wish || r.seal, settle || r.settle
			idle = max(idle, r.rest)
			continue
		}
		batches++
		bytes += r.batch.Bytes()
		buf, r.batch.spent = r.batch.buf, true
	}
	if settle {
		if err := l.settle(active); err != nil {
			return err
		}
	}
	used := active.size > headerBytes
	if used && (wish || batches > 0 && (l.due || active.size+int64(bytes) > l.o.SegmentBytes)) {
		fresh, err := l.roll(active)
		if err != nil {
			return err
		}
		active = fresh
	}
	switch {
	case batches == 0 && idle > 0 && !wish && !settle:
		return l.rest(idle)
	case batches == 0:
		return nil
	}
	if batches > 1 {
		buf = l.join(requests, bytes)
	}
	number(requests, active.next)
	n := l.seal(active, buf)
	if err := l.write(active, buf); err != nil {
		return err
	}
	l.publish(active, n, int64(len(buf)))
	return nil
}

// join puts the batches of a group into one buffer, so that one write takes them.
func (l *Log) join(requests []*request, bytes int) []byte {
	if cap(l.group) < bytes {
		l.group = make([]byte, 0, bytes)
	}
	buf := l.group[:0]
	for _, r := range requests {
		if r.batch != nil {
			buf = append(buf, r.batch.buf...)
		}
	}
	if cap(l.group) > keepBytes {
		l.group = nil
	}
	return buf
}

// number tells each request its first sequence number.
func number(requests []*request, next int64) {
	for _, r := range requests {
		r.first = next
		if r.batch != nil {
			next += int64(r.batch.Len())
		}
	}
}

// seal finishes the frames of a group and prepares the marks of its index.
func (l *Log) seal(active *segment, buf []byte) (frames int64) {
	l.marks = l.marks[:0]
	last := int64(-indexStep)
	if n := len(active.index); n > 0 {
		last = active.index[n-1].pos
	}
	seal(buf, active.next, func(seq int64, at int) {
		frames++
		if pos := active.size + int64(at); pos-last >= indexStep {
			l.marks = append(l.marks, mark{seq, pos})
			last = pos
		}
	})
	return frames
}

// write puts a group on the disk. After a full disk the segment is as before; any other failure ends the log.
func (l *Log) write(active *segment, buf []byte) error {
	file, err := l.appendFile(active)
	if err != nil {
		return err // nothing was written, and the next append tries again
	}
	if _, err = file.WriteAt(buf, active.size); err != nil {
		undone := file.Truncate(active.size)
		if vfs.IsFull(err) && undone == nil {
			if undone = file.Sync(); undone == nil {
				return full(err)
			}
		}
		return l.fail(fmt.Errorf("append to %s: %w", active.path, errors.Join(err, undone)))
	}
	if l.draft {
		return nil
	}
	if err = l.syncFile(file); err != nil {
		// The bytes may be on the disk or not. Cutting them keeps a later Open from showing what may yet vanish.
		return l.fail(fmt.Errorf("sync %s: %w", active.path, errors.Join(err, file.Truncate(active.size))))
	}
	return nil
}

// publish makes a group visible, which is durable unless the log is a draft.
func (l *Log) publish(active *segment, frames, bytes int64) {
	l.mu.Lock()
	active.index = append(active.index, l.marks...)
	active.next += frames
	active.size += bytes
	active.newest = time.Now()
	l.next.Store(active.next)
	l.mu.Unlock()
	l.durable.Fire()
}

// roll seals the active segment and begins the next one. After a full disk, which may leave a file of the next one, nothing is appended to the active
// segment any more: an Open would take it to end where that file begins.
func (l *Log) roll(active *segment) (*segment, error) {
	fresh, err := createSegment(l.o, active.next, !l.draft)
	if err != nil {
		if vfs.IsFull(err) {
			l.due = true
			return nil, full(err)
		}
		return nil, l.fail(fmt.Errorf("begin segment %d: %w", active.next, err))
	}
	l.due = false
	if l.draft {
		l.syncBehind(active)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.Preallocate && active.file != nil {
		_ = active.file.Truncate(active.size) // gives back the room only, so that a failure costs nothing else
	}
	l.touch()
	l.list = append(l.list, fresh)
	l.evict()
	return fresh, nil
}

// fail poisons the log. The first cause stays.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure = fmt.Errorf("%w: %w", ErrFailed, cause)
	}
	return l.failure
}

// full marks a full disk as ErrFull and leaves other errors alone.
func full(err error) error {
	if err == nil || !vfs.IsFull(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFull, err)
}

// Failed is the ErrFailed that every Append returns from now on, nil while the log works.
func (l *Log) Failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

func (l *Log) active() *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list[len(l.list)-1]
}

// First is the lowest sequence number that the log holds; it is Next when the log holds none.
func (l *Log) First() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list[0].first
}

// Next is the end, durable unless the log is a draft: the sequence number that the next frame will have.
func (l *Log) Next() int64 { return l.next.Load() }

// Durable returns a channel that is closed when Next moves. Take it before asking for Next.
func (l *Log) Durable() <-chan struct{} { return l.durable.Wait() }

// Close waits for the appends, and the syncs of a draft, under way and closes the files; a read under way closes the one that it has. What a draft's
// sync failed with is told by Failed.
func (l *Log) Close() error {
	l.commits.Close()
	l.syncing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs error
	for _, s := range l.list {
		s.gone = true
		errs = errors.Join(errs, s.closeFile())
	}
	return errs
}
