package bench

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// delayLine is a wire that is long and wide: every byte arrives half a round trip after it was sent, however many there are. Its
// goroutines end with close.
type delayLine struct {
	addr string // host:port where it listens
	to   string
	half time.Duration

	l      net.Listener
	ctx    context.Context // of dials and waits
	cancel context.CancelFunc
	all    sync.WaitGroup
}

// newDelayLine listens on addr and passes connections on to the address to.
func newDelayLine(addr, to string, roundTrip time.Duration) (*delayLine, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		cancel()
		return nil, err
	}
	d := &delayLine{addr: l.Addr().String(), to: to, half: roundTrip / 2, l: l, ctx: ctx, cancel: cancel}
	d.all.Go(d.accept)
	return d, nil
}

func (d *delayLine) close() {
	d.cancel()
	_ = d.l.Close()
	d.all.Wait()
}

func (d *delayLine) accept() {
	for {
		near, err := d.l.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{}).DialContext(d.ctx, "tcp", d.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		stop := context.AfterFunc(d.ctx, func() { _ = errors.Join(near.Close(), far.Close()) })
		var both sync.WaitGroup
		both.Go(func() { d.carry(near, far) })
		both.Go(func() { d.carry(far, near) })
		d.all.Go(func() {
			both.Wait()
			stop()
			_ = errors.Join(near.Close(), far.Close())
		})
	}
}

// parcel is bytes on their way; none are the end.
type parcel struct {
	due  time.Time
	data []byte
}

// carry moves one direction until its sender's end has arrived.
func (d *delayLine) carry(from, to net.Conn) {
	way := make(chan parcel, 1<<14)
	d.all.Go(func() {
		defer close(way)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			select {
			case way <- parcel{time.Now().Add(d.half), data[:n]}:
			case <-d.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	broken := false
	for p := range way {
		if d.wait(p.due); broken {
			continue // so that the reader is not stuck
		}
		if _, err := to.Write(p.data); err != nil {
			broken = true
			_ = from.Close()
		}
	}
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

func (d *delayLine) wait(until time.Time) {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.ctx.Done():
	}
}
