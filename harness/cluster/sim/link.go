package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"narad.example/harness/cluster"
)

// link is the way from source to target: a listener on the host "link" that joins each connection with one to the edge.
type link struct {
	host   *Host
	listen string // host:port it listens on
	far    string // host:port of the edge
	prober *cluster.Prober
	loops  sync.WaitGroup

	// mu guards everything below; it is never held while a line is changed.
	mu       sync.Mutex
	listener net.Listener // nil while disabled
	toxics   []*toxics.ToxicWrapper
	lines    map[*line]stream.Direction
}

func newLink(host *Host, listen, far string) *link {
	return &link{host: host, listen: listen, far: far, lines: map[*line]stream.Direction{}}
}

// Enable lets connections through again.
func (l *link) Enable(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		return nil
	}
	listener, err := l.host.Listen("tcp", l.listen)
	if err != nil {
		return fmt.Errorf("%w: link: %w", cluster.ErrTrouble, err)
	}
	l.listener = listener
	l.loops.Go(func() { l.accept(listener) })
	return nil
}

// Disable ends every connection and refuses new ones.
func (l *link) Disable(context.Context) error {
	l.mu.Lock()
	listener, lines := l.listener, l.all()
	l.listener = nil
	l.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
	for _, ln := range lines {
		_ = ln.src.Close()
		_ = ln.dst.Close()
	}
	return nil
}

// all lists the lines; mu must be held.
func (l *link) all() []*line {
	out := make([]*line, 0, len(l.lines))
	for ln := range l.lines {
		out = append(out, ln)
	}
	return out
}

func (l *link) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		l.loops.Go(func() { l.carry(c.(*tracked)) })
	}
}

// carry joins one connection with the edge until it ends.
func (l *link) carry(client *tracked) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := l.host.Dial(ctx, "tcp", l.far, nil)
	if err != nil {
		_ = client.Close()
		return
	}
	l.mu.Lock()
	up, down := join(client, c.(*tracked), l.chain(stream.Upstream), l.chain(stream.Downstream))
	l.lines[up], l.lines[down] = stream.Upstream, stream.Downstream
	l.mu.Unlock()
	up.wait()
	down.wait()
	l.mu.Lock()
	delete(l.lines, up)
	delete(l.lines, down)
	l.mu.Unlock()
}

// chain is the toxics of one direction; mu must be held.
func (l *link) chain(d stream.Direction) []*toxics.ToxicWrapper {
	var out []*toxics.ToxicWrapper
	for _, w := range l.toxics {
		if w.Direction == d {
			out = append(out, w)
		}
	}
	return out
}

// Add puts a toxic on every connection, present and future.
func (l *link) Add(_ context.Context, t cluster.Toxic) error {
	w, err := wrapper(t)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if slices.ContainsFunc(l.toxics, func(x *toxics.ToxicWrapper) bool { return x.Name == t.Name }) {
		l.mu.Unlock()
		return fmt.Errorf("%w: toxic %s is there already", cluster.ErrTrouble, t.Name)
	}
	l.toxics = append(l.toxics, w)
	lines := l.of(w.Direction)
	l.mu.Unlock()
	each(lines, func(ln *line) { ln.add(w) })
	return nil
}

// Remove takes a toxic away from every connection.
func (l *link) Remove(_ context.Context, name string) error {
	l.mu.Lock()
	i := slices.IndexFunc(l.toxics, func(x *toxics.ToxicWrapper) bool { return x.Name == name })
	if i < 0 {
		l.mu.Unlock()
		return fmt.Errorf("%w: there is no toxic %s", cluster.ErrTrouble, name)
	}
	w := l.toxics[i]
	l.toxics = slices.Delete(l.toxics, i, i+1)
	lines := l.of(w.Direction)
	l.mu.Unlock()
	each(lines, func(ln *line) { ln.remove(name) })
	return nil
}

// of lists the lines of a direction; mu must be held.
func (l *link) of(d stream.Direction) []*line {
	var out []*line
	for ln, dir := range l.lines {
		if dir == d {
			out = append(out, ln)
		}
	}
	return out
}

func each(lines []*line, f func(*line)) {
	var all sync.WaitGroup
	for _, ln := range lines {
		all.Go(func() { f(ln) })
	}
	all.Wait()
}

// Reset enables the link and removes every toxic.
func (l *link) Reset(ctx context.Context) error {
	_, names, err := l.State(ctx)
	for _, name := range names {
		err = errors.Join(err, l.Remove(ctx, name))
	}
	return errors.Join(err, l.Enable(ctx))
}

// State is what is set.
func (l *link) State(context.Context) (enabled bool, names []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.toxics {
		names = append(names, w.Name)
	}
	return l.listener != nil, names, nil
}

// Probe sends bytes to the far end and back on a fresh connection.
func (l *link) Probe(ctx context.Context, n int) (time.Duration, error) {
	return l.prober.Probe(ctx, n)
}

// Hold keeps a connection through the link.
func (l *link) Hold(ctx context.Context) (cluster.Held, error) { return l.prober.Hold(ctx) }

// close ends the link for good and waits for its goroutines.
func (l *link) close() {
	_ = l.Disable(context.Background())
	l.loops.Wait()
}

// wrapper makes toxiproxy's own toxic of a scenario's, through the JSON that its API would take.
func wrapper(t cluster.Toxic) (*toxics.ToxicWrapper, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	w := &toxics.ToxicWrapper{Name: t.Name, Type: t.Type, Stream: t.Stream, Toxicity: 1}
	if toxics.New(w) == nil {
		return nil, fmt.Errorf("%w: toxiproxy has no toxic %s", cluster.ErrTrouble, t.Type)
	}
	d, err := stream.ParseDirection(t.Stream)
	if err != nil {
		return nil, fmt.Errorf("%w: toxic %s: %w", cluster.ErrTrouble, t.Name, err)
	}
	w.Direction = d
	body, err := json.Marshal(t.Attributes)
	if err == nil {
		err = json.Unmarshal(body, w.Toxic)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: toxic %s: %w", cluster.ErrTrouble, t.Name, err)
	}
	return w, nil
}
