package seglog

import (
	"context"
	"fmt"
	"time"

	"narad.example/narad/vfs"
)

// Settle puts a draft (Options.Draft) on the disk and ends it: once it returns nil the log is one that was never a draft, and everything that
// Append answered before is durable. Of another log it does nothing. After ErrFailed the files are to be deleted; other errors are ErrClosed
// and ctx's, which leave the draft as it was.
func (l *Log) Settle(ctx context.Context) error {
	_, err := l.do(ctx, &request{settle: true})
	return err
}

// settle is Settle in a cycle, so that no append is under way.
func (l *Log) settle(active *segment) error {
	if !l.draft {
		return nil
	}
	l.syncBehind(active)
	l.syncing.Wait()
	if err := l.Failed(); err != nil {
		return err
	}
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return l.fail(fmt.Errorf("sync %s: %w", l.o.Dir, err))
	}
	l.draft = false
	return nil
}

// syncBehind begins to sync a segment of a draft that nothing is appended to any more, or not before that has ended. It waits while openFiles
// of them are under way. What fails is found by Failed.
func (l *Log) syncBehind(s *segment) {
	file, err := l.appendFile(s)
	if err != nil {
		_ = l.fail(err) // what the disk has of it is unknown
		return
	}
	l.mu.Lock()
	s.refs++ // the file stays open: only the one that was written to surely hears of a write that failed later
	l.mu.Unlock()
	l.behind <- struct{}{}
	l.syncing.Go(func() {
		defer func() { <-l.behind }()
		if err := l.syncFile(file); err != nil {
			_ = l.fail(fmt.Errorf("sync %s: %w", s.path, err))
		}
		_ = l.release(s) // it is synced, or the log has failed
	})
}

// syncFile syncs and tells OnSync how long that took.
func (l *Log) syncFile(file vfs.File) error {
	began := time.Now()
	if err := file.Sync(); err != nil {
		return err
	}
	if l.o.OnSync != nil {
		l.o.OnSync(time.Since(began))
	}
	return nil
}
