package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"narad.example/narad/seglog"
	"narad.example/narad/vfs"
)

// StoreOptions say where partitions lie; OnSync and OnTorn hear about each of them and may be nil.
type StoreOptions struct {
	FS           vfs.FS // nil is the real disk
	Dir          string
	Now          func() time.Time // nil is time.Now
	SegmentBytes int64            // 0 is 64 MiB
	Codec        *Codec           // nil stores payloads as they are
	OnSync       func(topicID string, partition int, d time.Duration)
	OnTorn       func(path string, offset, bytes int64)
}

// Store opens the partitions of a node on demand, each once, under <dir>/<topic ID>/<index>. A topic that was created
// anew has another ID, so it never meets the old one's records (BRK-09).
type Store struct {
	o StoreOptions

	// mu guards what follows; no file is touched under it.
	mu     sync.Mutex
	open   map[key]*opening
	closed bool
}

type key struct {
	topicID   string
	partition int
}

// opening is a partition that is open, or is being opened or closed by somebody else until ready is closed.
type opening struct {
	ready chan struct{}
	p     *Partition
	err   error
}

// NewStore makes a Store. It touches no file.
func NewStore(o StoreOptions) *Store {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Codec == nil {
		o.Codec = NewCodec()
	}
	return &Store{o: o, open: map[key]*opening{}}
}

// Dir is where a partition lies, open or not.
func (s *Store) Dir(topicID string, partition int) string {
	return filepath.Join(s.o.Dir, topicID, strconv.Itoa(partition))
}

// Open returns the partition, opening or beginning it when it is not open yet. It stays open until Drop, Remove or Close.
func (s *Store) Open(topicID string, partition int) (*Partition, error) {
	return s.openAs(topicID, partition, 0, false)
}

// OpenDraft is Open of a partition that has no files yet: it begins at the offset start, and its commits do not sync until Partition.Settle. A
// move copies into such a one; until it is settled nobody may count on it, and after a restart it is only fit for Remove.
func (s *Store) OpenDraft(topicID string, partition int, start int64) (*Partition, error) {
	return s.openAs(topicID, partition, start, true)
}

func (s *Store) openAs(topicID string, partition int, start int64, draft bool) (*Partition, error) {
	if err := plain(topicID); err != nil || partition < 0 {
		return nil, errors.Join(err, fmt.Errorf("open partition %d: no such place", partition))
	}
	k := key{topicID, partition}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	o := s.open[k]
	if o != nil {
		s.mu.Unlock()
		<-o.ready
		return o.p, o.err
	}
	o = &opening{ready: make(chan struct{})}
	s.open[k] = o
	s.mu.Unlock()

	o.p, o.err = Open(s.options(k, start, draft))
	if o.err != nil {
		s.mu.Lock()
		delete(s.open, k)
		s.mu.Unlock()
	}
	close(o.ready)
	return o.p, o.err
}

func (s *Store) options(k key, start int64, draft bool) Options {
	o := Options{
		FS: s.o.FS, Dir: s.Dir(k.topicID, k.partition), Now: s.o.Now, SegmentBytes: s.o.SegmentBytes, Start: start, Draft: draft, Codec: s.o.Codec, OnTorn: s.o.OnTorn,
	}
	if s.o.OnSync != nil {
		o.OnSync = func(d time.Duration) { s.o.OnSync(k.topicID, k.partition, d) }
	}
	return o
}

// plain refuses a topic ID that would lead out of the store's directory.
func plain(topicID string) error {
	if topicID == "" || topicID == "." || topicID == ".." || strings.ContainsAny(topicID, `/\`) {
		return fmt.Errorf("%q is no topic ID", topicID)
	}
	return nil
}

// Drop closes the partitions of a topic and deletes its files. Nobody may open them meanwhile: the topic is deleted.
func (s *Store) Drop(topicID string) error {
	if err := plain(topicID); err != nil {
		return err
	}
	err := s.shut(func(k key) bool { return k.topicID == topicID })
	return errors.Join(err, s.remove(filepath.Join(s.o.Dir, topicID)))
}

// Remove closes one partition and deletes its files, as after a move.
func (s *Store) Remove(topicID string, partition int) error {
	if err := plain(topicID); err != nil {
		return err
	}
	err := s.shut(func(k key) bool { return k == key{topicID, partition} })
	return errors.Join(err, s.remove(s.Dir(topicID, partition)))
}

// Release closes one partition and leaves its files.
func (s *Store) Release(topicID string, partition int) error {
	return s.shut(func(k key) bool { return k == key{topicID, partition} })
}

// remove deletes a directory for good.
func (s *Store) remove(dir string) error {
	if err := s.o.FS.RemoveAll(dir); err != nil {
		return fmt.Errorf("delete %s: %w", dir, err)
	}
	if err := s.o.FS.SyncDir(filepath.Dir(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", dir, err)
	}
	return nil
}

// shut closes the partitions that match.
func (s *Store) shut(match func(key) bool) error {
	s.mu.Lock()
	var list []*opening
	for k, o := range s.open {
		if match(k) {
			list = append(list, o)
			delete(s.open, k)
		}
	}
	s.mu.Unlock()
	var errs error
	for _, o := range list {
		<-o.ready
		if o.p != nil {
			errs = errors.Join(errs, o.p.Close())
		}
	}
	return errs
}

// Rest closes the files of the partitions that nobody has used for so long and returns how many rest. A partition that fails or is
// closed meanwhile is passed over.
func (s *Store) Rest(ctx context.Context, idle time.Duration) (resting int, err error) {
	s.mu.Lock()
	list := make([]*opening, 0, len(s.open))
	for _, o := range s.open {
		list = append(list, o)
	}
	s.mu.Unlock()
	for _, o := range list {
		select {
		case <-o.ready:
		default:
			continue // it is being opened
		}
		if o.p == nil {
			continue
		}
		rests, failure := o.p.Rest(ctx, idle)
		if rests {
			resting++
		}
		if failure != nil && !errors.Is(failure, seglog.ErrClosed) && !errors.Is(failure, seglog.ErrFailed) {
			err = errors.Join(err, failure)
		}
	}
	return resting, err
}

// Topics lists the topic IDs that have files here, whether or not their topics still exist.
func (s *Store) Topics() ([]string, error) {
	entries, err := s.o.FS.ReadDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Exists tells whether a partition has files here.
func (s *Store) Exists(topicID string, partition int) (bool, error) {
	_, err := s.o.FS.Stat(s.Dir(topicID, partition))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Close closes all partitions and refuses to open more.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.shut(func(key) bool { return true })
}
