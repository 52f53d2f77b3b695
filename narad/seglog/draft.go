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
	if err := l.syncDraft(active); err != nil {
		return err
	}
	l.draft = false
	return nil
}

// syncDraft syncs what a draft has in its active segment. Those before it were synced when they were sealed, so that a draft never has more than a
// segment in doubt, and that segment's frames are one group.
func (l *Log) syncDraft(active *segment) error {
	if l.unsynced == 0 {
		return nil
	}
	file, err := l.appendFile(active)
	if err != nil {
		return l.fail(err) // what the disk has of it is unknown
	}
	if err = l.syncFile(file); err != nil {
		return l.fail(fmt.Errorf("sync %s: %w", active.path, err))
	}
	l.unsynced = 0
	return nil
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
