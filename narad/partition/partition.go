package partition

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/narad/seglog"
	"narad.example/narad/seglog/cycle"
	"narad.example/narad/vfs"
)

const (
	cycleBytes    = 8 << 20   // of records in one commit cycle, unless one commit alone is larger
	readBackBytes = 256 << 10 // read at once to verify what was written
)

var (
	// ErrTrimmed is returned by Read below the oldest record. It comes as a *Trimmed, which knows that offset.
	ErrTrimmed = errors.New("the record is no longer retained")
	// ErrFailed is returned by Commit, with the cause, once a write, a sync or a read-back has failed.
	ErrFailed = seglog.ErrFailed
	// ErrFull is returned by Commit when the disk is full; nothing was stored and a later try may succeed.
	ErrFull = seglog.ErrFull
	// ErrDamaged is returned by Open and Read for records that were durable once and do not read back.
	ErrDamaged = seglog.ErrDamaged
	// ErrClosed is returned after Close.
	ErrClosed = seglog.ErrClosed
	// ErrGap is returned by Import for records that do not follow on what is there.
	ErrGap = errors.New("the records do not follow on the partition's last one")
	// ErrForeign is returned by Import for what is no run of records of this release.
	ErrForeign = errors.New("what came is no run of records of this release")
)

// Trimmed is the ErrTrimmed that Read returns.
type Trimmed struct{ Oldest int64 }

func (t *Trimmed) Error() string {
	return fmt.Sprintf("the record is no longer retained (oldest retained: %d)", t.Oldest)
}

// Is makes a Trimmed an ErrTrimmed.
func (t *Trimmed) Is(target error) bool { return target == ErrTrimmed }

// Options say where a partition lies.
type Options struct {
	FS           vfs.FS // nil is the real disk
	Dir          string
	Now          func() time.Time                       // nil is time.Now
	SegmentBytes int64                                  // 0 is 64 MiB
	Start        int64                                  // the first offset when Dir holds no log yet
	Draft        bool                                   // commits do not sync until Settle (seglog.Options)
	Codec        *Codec                                 // how payloads are stored from now on; nil as they are
	OnSync       func(time.Duration)                    // hears how long each fsync took; may be nil
	OnTorn       func(path string, offset, bytes int64) // hears that Open cut a torn tail; may be nil
}

// Partition is an open partition. Its methods may be called from any goroutine.
type Partition struct {
	dir     string
	now     func() time.Time
	codec   *Codec
	log     *seglog.Log
	commits *cycle.Cycle[*commit]
	grown   cycle.Signal
	high    atomic.Int64

	// What follows up to mu is the leader's: the caller who runs the commit cycle.
	head []byte

	lastMS atomic.Int64 // the commit time of the newest record, at least; the leader's to write

	// mu guards what follows.
	mu       sync.Mutex
	failure  error
	watchers map[int]func()
	watches  int
	newestMS map[int64]int64 // by a sealed segment's first offset: the commit time of its last record
	retain   sync.Mutex      // held by the one Retain at work; it guards nothing
}

// commit is what waits for a cycle.
type commit struct {
	recs   []Record
	box    *packed
	stored *seglog.Batch // an import, in recs' place, which begins at first
	newest int64         // its newest commit time
	first  int64
	err    error
}

// Open opens the partition in o.Dir, or begins one. What the log holds durably is visible: the high watermark is its end.
// Errors are those of seglog.Open.
func Open(o Options) (*Partition, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Codec == nil {
		o.Codec = NewCodec()
	}
	log, err := seglog.Open(seglog.Options{
		FS: o.FS, Dir: o.Dir, SegmentBytes: o.SegmentBytes, Start: o.Start, Draft: o.Draft, Lazy: true, OnSync: o.OnSync, OnTorn: o.OnTorn,
	})
	if err != nil {
		return nil, fmt.Errorf("open partition: %w", err)
	}
	p := &Partition{dir: o.Dir, now: o.Now, codec: o.Codec, log: log, watchers: map[int]func(){}, newestMS: map[int64]int64{}}
	p.high.Store(log.Next())
	if next := log.Next(); next > log.First() {
		last, err := p.commitTime(next - 1)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open partition: %w", err), log.Close())
		}
		p.lastMS.Store(last)
	}
	p.commits = cycle.New(p.cycle, func(c *commit) int64 {
		sum := int64(0)
		for i := range c.recs {
			sum += int64(len(c.recs[i].Key) + len(c.recs[i].Payload))
		}
		if c.stored != nil {
			sum += int64(c.stored.Bytes())
		}
		return sum
	}, cycleBytes)
	return p, nil
}

// Commit appends the records, syncs them, reads them back and verifies them, and then makes them visible; their Offset and
// CommitMS are ignored, and first is the offset of the first one (BRK-03). Commits that come meanwhile share the next
// cycle. Commit times never decrease along the partition, whatever the clock does. Errors are ErrFull, ErrFailed,
// ErrClosed, or ctx's, which means that nothing was stored.
func (p *Partition) Commit(ctx context.Context, recs []Record) (first int64, err error) {
	if len(recs) == 0 {
		return p.HighWatermark(), nil
	}
	c := &commit{recs: recs, box: p.codec.pack(recs)}
	defer p.codec.free(c.box)
	err = p.do(ctx, c)
	return c.first, err
}

func (p *Partition) do(ctx context.Context, c *commit) error {
	if err := p.commits.Do(ctx, c); err != nil {
		if errors.Is(err, cycle.ErrClosed) {
			err = ErrClosed
		}
		return err
	}
	return c.err
}

// cycle commits what waited together. Only the leader runs it.
func (p *Partition) cycle(commits []*commit) {
	p.mu.Lock()
	err := p.failure
	p.mu.Unlock()
	b := seglog.NewBatch()
	defer b.Free()
	first := p.log.Next()
	if err == nil {
		p.fill(b, commits, first)
	}
	if b.Len() == 0 {
		p.answer(commits, err)
		return
	}
	// The callers' contexts ended with the cycle's beginning: what is begun is finished.
	if _, err = p.log.Append(context.Background(), b); err == nil {
		if err = p.readBack(first, first+int64(b.Len())); err != nil {
			err = p.fail(err)
		}
	}
	if err == nil {
		p.high.Store(first + int64(b.Len()))
		p.announce()
	}
	p.answer(commits, err)
}

// fill puts the records of the commits into one batch and tells each commit its first offset.
func (p *Partition) fill(b *seglog.Batch, commits []*commit, first int64) {
	now, next, last := p.now().UnixMilli(), first, p.lastMS.Load()
	for _, c := range commits {
		if c.stored != nil {
			if c.first != next {
				c.err = ErrGap
				continue
			}
			next, last = next+int64(c.stored.Len()), max(last, c.newest)
			b.Join(c.stored)
			continue
		}
		c.first = next
		next += int64(len(c.recs))
		last = max(last, now)
		for i := range c.recs {
			r := &c.recs[i]
			payload, plain := c.box.payload(i), len(r.Payload)
			if payload == nil {
				payload, plain = r.Payload, 0
			}
			p.head = appendHead(p.head[:0], last, r.Key, plain)
			b.Add(p.head, r.Key, payload)
		}
	}
	p.lastMS.Store(last)
}

func (p *Partition) answer(commits []*commit, err error) {
	for _, c := range commits {
		if c.err == nil {
			c.err = err
		}
	}
}

// buffers lends memory to read-backs, so that a partition at rest keeps none.
var buffers = sync.Pool{New: func() any { return new(seglog.Buffer) }}

// readBack reads the frames from first to next from the file; the log verifies each checksum.
func (p *Partition) readBack(first, next int64) error {
	buf := buffers.Get().(*seglog.Buffer)
	for first < next {
		frames, err := p.log.Read(first, int(next-first), readBackBytes, buf)
		if err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		first += int64(len(frames))
	}
	if buf.Size() <= 4*readBackBytes {
		buffers.Put(buf)
	}
	return nil
}

// fail ends the partition: what was written does not read back, so nothing after it may be shown.
func (p *Partition) fail(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = fmt.Errorf("%w: %w", ErrFailed, cause)
	return p.failure
}

// announce tells those who wait that the high watermark has moved.
func (p *Partition) announce() {
	p.grown.Fire()
	p.mu.Lock()
	watchers := make([]func(), 0, len(p.watchers))
	for _, w := range p.watchers {
		watchers = append(watchers, w)
	}
	p.mu.Unlock()
	for _, w := range watchers {
		w()
	}
}

// HighWatermark is the offset after the last visible record.
func (p *Partition) HighWatermark() int64 { return p.high.Load() }

// Oldest is the offset of the oldest retained record; it is HighWatermark when there is none.
func (p *Partition) Oldest() int64 { return p.log.First() }

// Grown returns a channel that is closed when the high watermark moves. Take it before asking for HighWatermark.
func (p *Partition) Grown() <-chan struct{} { return p.grown.Wait() }

// Watch has f called after each move of the high watermark, from the goroutine that committed: f must be quick and may not
// call Watch or Commit. stop ends it; a call under way may still come to its end.
func (p *Partition) Watch(f func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.watches
	p.watches++
	p.watchers[id] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, id)
	}
}

// Failed is the ErrFailed that Commit returns from now on, nil while the partition works.
func (p *Partition) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return p.failure
	}
	return p.log.Failed()
}

// Dir is the directory of the partition, where the files lie that travel with it.
func (p *Partition) Dir() string { return p.dir }

// Rest closes the files of a partition that nobody has used for so long, and tells whether it rests. Whatever is done with it next opens
// them again. Errors are those of seglog.Log.Rest.
func (p *Partition) Rest(ctx context.Context, idle time.Duration) (bool, error) {
	return p.log.Rest(ctx, idle)
}

// Close waits for the commits under way and closes the log.
func (p *Partition) Close() error {
	p.commits.Close()
	return p.log.Close()
}

// commitTime reads when a record was committed, visible or not.
func (p *Partition) commitTime(offset int64) (int64, error) {
	buf := buffers.Get().(*seglog.Buffer)
	defer buffers.Put(buf)
	frames, err := p.log.Read(offset, 1, 1, buf)
	if err != nil {
		return 0, err
	}
	if len(frames) == 0 || len(frames[0].Body) < headBytes {
		return 0, fmt.Errorf("offset %d: %w", offset, errRecord)
	}
	return int64(binary.LittleEndian.Uint64(frames[0].Body[1:])), nil
}
