package seglog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"narad.example/narad/vfs"
)

// Rest closes the files of a log that nobody has read or appended to for so long, and forgets the index of its sealed segments; it
// tells whether the log rests now. The next read or append opens what it needs, and the first read of a sealed segment verifies it whole
// again. Errors are ErrFailed, ErrClosed, ctx's, or of a file that did not close, which loses nothing: all that is shown is synced.
func (l *Log) Rest(ctx context.Context, idle time.Duration) (bool, error) {
	l.mu.Lock()
	due, asleep := time.Since(l.touched) >= idle, l.asleep
	l.mu.Unlock()
	if !due || asleep {
		return due && asleep, nil
	}
	r := &request{rest: idle}
	if _, err := l.do(ctx, r); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asleep, nil
}

// rest is Rest in a cycle, so that no append is under way.
func (l *Log) rest(idle time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.touched) < idle || l.draft { // only the file that was written to surely hears of a write that failed later
		return nil
	}
	var errs error
	last := len(l.list) - 1
	for i, s := range l.list {
		if s.refs > 0 {
			return errs // it is being read, however long that takes
		}
		errs = errors.Join(errs, s.closeFile())
		if i < last {
			s.index, s.loaded = nil, false
		}
	}
	l.asleep = true
	return errs
}

// touch notes that the log is in use. mu is held.
func (l *Log) touch() { l.touched, l.asleep = time.Now(), false }

// appendFile is the active segment's file, opened again if the log has rested.
func (l *Log) appendFile(active *segment) (vfs.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touch()
	if active.file == nil {
		f, err := l.o.FS.OpenFile(active.path, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("append: %w", err)
		}
		active.file = f
	}
	return active.file, nil
}
