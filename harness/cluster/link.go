package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
)

// controlLimit is how long one call to toxiproxy may take; more is trouble of the harness (BR-37).
const controlLimit = 5 * time.Second

// proxyName is the one proxy of a link.
const proxyName = "source-target"

// toxiproxyLink is the one place that talks to toxiproxy. What is known of it and easy to get wrong:
//
//   - Units differ: milliseconds (latency, timeout, slow_close), microseconds (slicer), KB/s of 1,024 bytes (bandwidth).
//   - A toxic without a stream is downstream. Here the stream is compulsory.
//   - Removing a timeout toxic closes the connections that it held: "a stall that heals" is a stall and then a cut. A stall
//     after which the same connection carries data again is a bandwidth toxic of 1 KB/s, or a paused node.
//   - Removing a reset_peer toxic may block until its timeout is over: it does not listen while it waits.
//   - Its seed is not used: toxicity between 0 and 1, jitter and size_variation cannot be replayed. They are refused here;
//     package faults rolls and switches whole toxics on and off.
//   - limit_data counts per connection, from the moment the toxic is there, and the TLS handshake counts.
//   - Disabling a proxy closes its listener and every connection; enabling listens again on the same port.
//   - A connection is accepted before the upstream is dialled: with a dead upstream it is accepted and closed at once.
//   - Its client uses http.DefaultTransport and takes no context.
//   - A toxic's goroutine may outlive its connection, blocked on a channel for good, when a link goes down at a bad moment.
//
// Every change is read back before it counts as done.
type toxiproxyLink struct {
	// api returns where toxiproxy answers now; a published port changes when its container starts again.
	api    func(ctx context.Context) (string, error)
	prober *Prober

	calls sync.WaitGroup // calls to toxiproxy, also those that were given up; close waits for them
}

// create makes the proxy anew after it removed all that is there, and verifies that there is nothing else.
func (l *toxiproxyLink) create(ctx context.Context, listen, upstream string) error {
	return l.do(ctx, controlLimit, func(c *toxiproxy.Client) error {
		old, err := c.Proxies()
		if err != nil {
			return err
		}
		for _, p := range old {
			if err = p.Delete(); err != nil {
				return err
			}
		}
		if _, err = c.CreateProxy(proxyName, listen, upstream); err != nil {
			return err
		}
		now, err := c.Proxies()
		if err != nil {
			return err
		}
		p := now[proxyName]
		if len(now) != 1 || p == nil || !p.Enabled || len(p.ActiveToxics) != 0 {
			return errors.New("toxiproxy is not as clean as it was made")
		}
		return nil
	})
}

func (l *toxiproxyLink) Enable(ctx context.Context) error  { return l.set(ctx, true) }
func (l *toxiproxyLink) Disable(ctx context.Context) error { return l.set(ctx, false) }

func (l *toxiproxyLink) set(ctx context.Context, enabled bool) error {
	return l.change(ctx, controlLimit, func(p *toxiproxy.Proxy) error {
		p.Enabled = enabled
		return p.Save()
	}, func(p *toxiproxy.Proxy) bool { return p.Enabled == enabled })
}

func (l *toxiproxyLink) Add(ctx context.Context, t Toxic) error {
	if err := t.Check(); err != nil {
		return err
	}
	attributes := toxiproxy.Attributes{}
	for name, v := range t.Attributes {
		attributes[name] = v
	}
	return l.change(ctx, controlLimit, func(p *toxiproxy.Proxy) error {
		if slices.Contains(names(p), t.Name) {
			return fmt.Errorf("a toxic named %s is there already", t.Name)
		}
		_, err := p.AddToxic(t.Name, t.Type, t.Stream, 1, attributes)
		return err
	}, func(p *toxiproxy.Proxy) bool {
		i := slices.IndexFunc(p.ActiveToxics, func(x toxiproxy.Toxic) bool { return x.Name == t.Name })
		if i < 0 {
			return false
		}
		x := p.ActiveToxics[i]
		return x.Type == t.Type && x.Stream == t.Stream && x.Toxicity == 1 && maps.EqualFunc(t.Attributes, wanted(x.Attributes, t.Attributes), equal)
	})
}

// wanted is what toxiproxy reports of the attributes that were asked for; it adds the others with their zero.
func wanted(has toxiproxy.Attributes, asked map[string]int64) map[string]any {
	out := map[string]any{}
	for name := range asked {
		if v, ok := has[name]; ok {
			out[name] = v
		}
	}
	return out
}

func equal(want int64, has any) bool {
	f, ok := has.(float64)
	return ok && f == float64(want)
}

func (l *toxiproxyLink) Remove(ctx context.Context, name string) error {
	blocked, err := l.blocks(ctx, name)
	if err != nil {
		return err
	}
	return l.change(ctx, controlLimit+blocked, func(p *toxiproxy.Proxy) error { return p.RemoveToxic(name) },
		func(p *toxiproxy.Proxy) bool { return !slices.Contains(names(p), name) })
}

// blocks is how long removing the toxic may take by its nature.
func (l *toxiproxyLink) blocks(ctx context.Context, name string) (held time.Duration, err error) {
	err = l.do(ctx, controlLimit, func(c *toxiproxy.Client) error {
		p, perr := c.Proxy(proxyName)
		if perr != nil {
			return perr
		}
		for _, t := range p.ActiveToxics {
			if ms, ok := t.Attributes["timeout"].(float64); ok && t.Name == name && t.Type == "reset_peer" {
				held = time.Duration(ms) * time.Millisecond
			}
		}
		return nil
	})
	return held, err
}

func (l *toxiproxyLink) Reset(ctx context.Context) error {
	_, toxics, err := l.State(ctx)
	if err != nil {
		return err
	}
	for _, name := range toxics { // one by one, because each may block for its own time
		if err = l.Remove(ctx, name); err != nil {
			return err
		}
	}
	return l.Enable(ctx)
}

func (l *toxiproxyLink) State(ctx context.Context) (enabled bool, toxics []string, err error) {
	err = l.do(ctx, controlLimit, func(c *toxiproxy.Client) error {
		p, perr := c.Proxy(proxyName)
		if perr != nil {
			return perr
		}
		enabled, toxics = p.Enabled, names(p)
		return nil
	})
	if err != nil {
		return false, nil, err
	}
	return enabled, toxics, nil
}

func (l *toxiproxyLink) Probe(ctx context.Context, bytes int) (time.Duration, error) {
	return l.prober.Probe(ctx, bytes)
}

func (l *toxiproxyLink) Hold(ctx context.Context) (Held, error) { return l.prober.Hold(ctx) }

func names(p *toxiproxy.Proxy) []string {
	out := []string{}
	for _, t := range p.ActiveToxics {
		out = append(out, t.Name)
	}
	return out
}

// change alters the proxy and reads back that it is so.
func (l *toxiproxyLink) change(ctx context.Context, limit time.Duration, alter func(*toxiproxy.Proxy) error, is func(*toxiproxy.Proxy) bool) error {
	return l.do(ctx, limit, func(c *toxiproxy.Client) error {
		p, err := c.Proxy(proxyName)
		if err != nil {
			return err
		}
		if err = alter(p); err != nil {
			return err
		}
		if p, err = c.Proxy(proxyName); err != nil {
			return err
		}
		if !is(p) {
			return errors.New("toxiproxy does not show what was set")
		}
		return nil
	})
}

// do runs one call to toxiproxy, whose client takes no context, and gives it up after limit or when ctx ends.
func (l *toxiproxyLink) do(ctx context.Context, limit time.Duration, call func(*toxiproxy.Client) error) error {
	endpoint, err := l.api(ctx)
	if err != nil {
		return fmt.Errorf("%w: toxiproxy: %w", ErrTrouble, err)
	}
	done := make(chan error, 1)
	l.calls.Go(func() { done <- call(toxiproxy.NewClient(endpoint)) })
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w: toxiproxy: %w", ErrTrouble, err)
	}
	return nil
}

// close waits for calls that were given up and lets go of their connections.
func (l *toxiproxyLink) close() {
	l.calls.Wait()
	http.DefaultClient.CloseIdleConnections()
}
