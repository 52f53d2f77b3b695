package sim

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// line carries one direction of one connection through a chain of toxiproxy's toxics:
//
//	src > pump > noop > toxic > toxic > writer > dst
//
// A noop stands first, so that there is always a stub before the one that is taken out. One goroutine, manage, changes the
// chain; no lock is held while it waits, since in a bubble a goroutine that waits for a mutex keeps the clock from moving.
type line struct {
	src, dst *tracked
	stubs    []*toxics.ToxicStub
	wrappers []*toxics.ToxicWrapper
	first    chan *stream.StreamChunk
	ops      chan func()
	dead     chan struct{} // closed once: the connection is over
	kill     func()
	running  sync.WaitGroup

	resetting atomic.Int32 // reset_peer toxics in the chain: its end is a reset
}

func newLine(src, dst *tracked, chain []*toxics.ToxicWrapper) *line {
	l := &line{src: src, dst: dst, ops: make(chan func()), dead: make(chan struct{})}
	l.kill = sync.OnceFunc(func() { close(l.dead) })
	l.wrappers = append([]*toxics.ToxicWrapper{{Toxic: new(toxics.NoopToxic), Type: "noop", Toxicity: 1}}, chain...)
	l.first = make(chan *stream.StreamChunk)
	in := l.first
	for i := range l.wrappers {
		size := 0
		if i+1 < len(l.wrappers) {
			size = l.wrappers[i+1].BufferSize
		}
		out := make(chan *stream.StreamChunk, size)
		l.stubs = append(l.stubs, toxics.NewToxicStub(in, out))
		in = out
	}
	for i, w := range l.wrappers {
		l.start(l.stubs[i], w, true)
	}
	l.running.Go(l.pump)
	l.running.Go(func() { l.write(in) })
	l.running.Go(l.manage)
	return l
}

// wait returns when every goroutine of the line has ended.
func (l *line) wait() { l.running.Wait() }

func (l *line) start(stub *toxics.ToxicStub, w *toxics.ToxicWrapper, fresh bool) {
	if s, ok := w.Toxic.(toxics.StatefulToxic); ok && fresh {
		stub.State = s.NewState()
	}
	if _, ok := w.Toxic.(*toxics.ResetToxic); ok && fresh {
		l.resetting.Add(1)
	}
	l.running.Go(func() { stub.Run(w) })
}

// pump moves what comes from src into the chain until src or the line ends.
func (l *line) pump() {
	defer close(l.first)
	buf := make([]byte, 32<<10)
	for {
		n, err := l.src.Read(buf)
		if n > 0 {
			chunk := &stream.StreamChunk{Data: append([]byte(nil), buf[:n]...), Timestamp: time.Now()}
			select {
			case l.first <- chunk:
			case <-l.dead:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write moves what leaves the chain into dst. When the chain ends, or dst does, the whole connection is over: abruptly if
// the chain resets, else with a close.
func (l *line) write(out <-chan *stream.StreamChunk) {
	for chunk := range out {
		if _, err := l.dst.Write(chunk.Data); err != nil {
			break
		}
	}
	if l.resetting.Load() > 0 {
		l.src.Reset()
		l.dst.Reset()
	}
	_ = l.dst.Close()
	_ = l.src.Close()
	l.kill()
	for range out { // what a toxic still sends has nowhere to go
		continue
	}
}

// manage runs the changes of the chain one after the other. Once the line is dead it drains every stub, so that none hangs
// on a send that nobody takes.
func (l *line) manage() {
	for {
		select {
		case op := <-l.ops:
			op()
		case <-l.dead:
			for _, s := range l.stubs {
				l.running.Go(func() {
					for range s.Input {
						continue
					}
				})
			}
			return
		}
	}
}

// do runs f in the manager and waits for it; on a dead line it does nothing.
func (l *line) do(f func()) {
	done := make(chan struct{})
	select {
	case l.ops <- func() { defer close(done); f() }:
	case <-l.dead:
		return
	}
	select {
	case <-done:
	case <-l.dead:
	}
}

// add puts a toxic at the end of the chain.
func (l *line) add(w *toxics.ToxicWrapper) {
	l.do(func() {
		last := l.stubs[len(l.stubs)-1]
		in := make(chan *stream.StreamChunk, w.BufferSize)
		stub := toxics.NewToxicStub(in, last.Output)
		if !l.interrupt(last) {
			return
		}
		last.Output = in
		l.start(stub, w, true)
		l.start(last, l.wrappers[len(l.wrappers)-1], false)
		l.stubs, l.wrappers = append(l.stubs, stub), append(l.wrappers, w)
	})
}

// remove takes a toxic out. What it held goes on to the next, unless the toxic closes when it is taken away, as toxiproxy's
// timeout does.
func (l *line) remove(name string) {
	l.do(func() {
		for k := 1; k < len(l.wrappers); k++ {
			if l.wrappers[k].Name == name {
				l.removeAt(k)
				return
			}
		}
	})
}

func (l *line) removeAt(k int) {
	stub, before := l.stubs[k], l.stubs[k-1]
	if !l.interrupt(stub) {
		return
	}
	if c, ok := l.wrappers[k].Toxic.(toxics.CleanupToxic); ok {
		if c.Cleanup(stub); stub.Closed() {
			return
		}
	}
	stopped := make(chan bool, 1)
	l.running.Go(func() { stopped <- l.interrupt(before) })
	for waiting := true; waiting; {
		select {
		case ok := <-stopped:
			// A stub before this one that has closed sent all it had; what it sent is forwarded until its end.
			if stopped = nil; ok {
				waiting = false
			}
		case chunk := <-stub.Input:
			if !l.forward(stub, chunk) {
				return
			}
		}
	}
	for len(stub.Input) > 0 {
		if !l.forward(stub, <-stub.Input) {
			return
		}
	}
	if _, ok := l.wrappers[k].Toxic.(*toxics.ResetToxic); ok {
		l.resetting.Add(-1)
	}
	before.Output = stub.Output
	l.start(before, l.wrappers[k-1], false)
	l.stubs = append(l.stubs[:k:k], l.stubs[k+1:]...)
	l.wrappers = append(l.wrappers[:k:k], l.wrappers[k+1:]...)
}

// interrupt is the stub's own interrupt, given up when the line dies: a toxic that sends into nothing cannot be interrupted.
func (l *line) interrupt(stub *toxics.ToxicStub) bool {
	ok := make(chan bool, 1)
	l.running.Go(func() { ok <- stub.InterruptToxic() })
	return <-ok
}

// forward passes on what a stub held; false when the stream ended there.
func (l *line) forward(stub *toxics.ToxicStub, chunk *stream.StreamChunk) bool {
	if chunk == nil {
		stub.Close()
		return false
	}
	select {
	case stub.Output <- chunk:
		return true
	case <-l.dead:
		stub.Close()
		return false
	}
}

// join makes the two lines of one connection. Either end's end is the end of both.
func join(client, server *tracked, up, down []*toxics.ToxicWrapper) (upstream, downstream *line) {
	return newLine(client, server, up), newLine(server, client, down)
}

var _ io.ReadWriteCloser = (*tracked)(nil)
var _ net.Conn = (*tracked)(nil)
