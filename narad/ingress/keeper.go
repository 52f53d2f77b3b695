package ingress

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"time"

	"narad.example/narad/seglog"
	"narad.example/narad/slots"
)

const (
	checkpointName  = "checkpoint"
	checkpointSync  = time.Second // after a checkpoint was written it is durable within this
	checkpointRetry = time.Second
)

// keeper writes the checkpoint, to the page cache promptly and to the disk within checkpointSync, and drops the segments
// below the durable one.
type keeper struct {
	o       Options
	log     *seglog.Log
	file    *slots.File
	written int64 // in the page cache
	synced  int64 // durable
	failing bool  // the error is logged; until a checkpoint is durable again
	kick    chan struct{}
}

// openKeeper reads the checkpoint. One that is missing, damaged or beyond the log makes everything in the log be dispatched
// again: repeated, never lost.
func openKeeper(o Options, log *seglog.Log) (*keeper, error) {
	k := &keeper{o: o, log: log, kick: make(chan struct{}, 1)}
	file, value, verdict, err := slots.Open(o.FS, filepath.Join(o.Dir, checkpointName))
	if err != nil {
		return nil, err
	}
	k.file = file
	at := log.First()
	switch {
	case verdict == slots.Missing:
	case verdict == slots.Damaged || len(value) != 8:
		o.Logger.Error("the ingress checkpoint is damaged, all records of the log are dispatched again", "from", at)
	default:
		kept := int64(binary.LittleEndian.Uint64(value))
		if kept > log.Next() {
			o.Logger.Error("the ingress checkpoint is beyond the log, all records of the log are dispatched again",
				"checkpoint", kept, "next", log.Next(), "from", at)
		} else {
			at = max(at, kept)
		}
	}
	k.written, k.synced = at, at
	return k, nil
}

// moved tells the loop that the checkpoint moved.
func (k *keeper) moved() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// run writes what at returns after each kick until ctx ends, then a last time and durably.
func (k *keeper) run(ctx context.Context, at func() int64) {
	timer := time.NewTimer(checkpointSync)
	timer.Stop()
	defer timer.Stop()
	armed := false
	for {
		select {
		case <-ctx.Done():
			k.failed(k.write(at()))
			k.failed(k.sync())
			return
		case <-k.kick:
			k.failed(k.write(at()))
			if !armed {
				timer.Reset(checkpointSync)
				armed = true
			}
		case <-timer.C:
			armed = false
			err := k.write(at()) // again, in case the last one failed
			if err == nil {
				err = k.sync()
			}
			if k.failed(err) {
				timer.Reset(checkpointRetry)
				armed = true
			}
		}
	}
}

func (k *keeper) write(at int64) error {
	if at == k.written {
		return nil
	}
	var value [8]byte
	binary.LittleEndian.PutUint64(value[:], uint64(at))
	if err := k.file.Write(value[:]); err != nil {
		k.written = k.synced // nothing is known of what was written since
		return err
	}
	k.written = at
	return nil
}

func (k *keeper) sync() error {
	if k.written == k.synced {
		return nil
	}
	if err := k.file.Sync(); err != nil {
		k.written = k.synced // unknown: write it again
		return err
	}
	k.synced = k.written
	k.failing = false
	return k.log.DropBefore(k.synced)
}

// failed logs the first of a row of errors. Nothing is lost by one: the checkpoint stays behind and segments are kept.
func (k *keeper) failed(err error) bool {
	if err != nil && !k.failing {
		k.o.Logger.Error("the ingress checkpoint cannot be written, tried again every second", "error", err)
	}
	k.failing = k.failing || err != nil
	return err != nil
}

func (k *keeper) close() error { return k.file.Close() }
