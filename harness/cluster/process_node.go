package cluster

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"narad.example/narad/client"
)

// processNode is a node that is a process on loopback. Its address never changes.
type processNode struct {
	side, base string
	web        *web
	password   string
	child      *child
	file       string // its configuration
	config     func(over map[string]any) ([]byte, error)
	spare      atomic.Bool // it has not joined yet
	older      atomic.Bool // the next start poses as an older release
	narad      string      // the binary of the present one
	rpc        string
	mover      *mover
}

func (n *processNode) Name() string { return n.child.name }

func (n *processNode) Side() string { return n.side }

func (n *processNode) Client() *client.Client { return n.ClientAs(adminUser, n.password) }

func (n *processNode) ClientAs(user, password string) *client.Client {
	return n.web.client(n.base, user, password)
}

func (n *processNode) Running() bool { return n.child.running() }

func (n *processNode) Start(ctx context.Context) error {
	if err := n.child.launch(); err != nil {
		return err
	}
	return n.ready(ctx)
}

func (n *processNode) waits() bool { return n.spare.Load() }

// Join is Joiner.
func (n *processNode) Join(ctx context.Context) error {
	if !n.spare.Swap(false) {
		return fmt.Errorf("%w: %s is no spare, or not any more", ErrTrouble, n.Name())
	}
	return n.Start(ctx)
}

// Older is Upgradable.
func (n *processNode) Older() bool { return n.older.Load() }

// Upgrade is Upgradable.
func (n *processNode) Upgrade(context.Context) error {
	if n.Running() {
		return fmt.Errorf("%w: %s runs: a release is changed between two runs", ErrTrouble, n.Name())
	}
	n.child.become(n.narad, olderEnv)
	n.older.Store(false)
	return nil
}

// Move is Mover.
func (n *processNode) Move(ctx context.Context, topic string, partition int, to string) error {
	return n.mover.move(ctx, n, topic, partition, to)
}

// StartSlowly is Slow: the process is stopped as soon as it is there.
func (n *processNode) StartSlowly(ctx context.Context, still time.Duration) error {
	if err := n.child.launch(); err != nil {
		return err
	}
	if err := n.Pause(ctx); err != nil {
		return err
	}
	t := time.NewTimer(still)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	if err := n.Resume(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return n.ready(ctx)
}

func (n *processNode) ready(ctx context.Context) error {
	base := func(context.Context) (string, error) { return n.base, nil }
	return n.web.ready(ctx, n.Name(), "/readyz", base, n.child.ended())
}

// Reconfigure is Reconfigurable.
func (n *processNode) Reconfigure(_ context.Context, over map[string]any) error {
	body, err := n.config(over)
	if err != nil {
		return err
	}
	if err = os.WriteFile(n.file, body, 0o600); err != nil {
		return fmt.Errorf("%w: config of %s: %w", ErrTrouble, n.Name(), err)
	}
	return nil
}

func (n *processNode) Stop(ctx context.Context) error { return n.child.end(ctx, syscall.SIGTERM) }

func (n *processNode) Kill(ctx context.Context) error { return n.child.end(ctx, syscall.SIGKILL) }

// Pause returns when the kernel has stopped the process, where that can be seen.
func (n *processNode) Pause(ctx context.Context) error {
	if err := n.child.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return n.child.settle(ctx, true)
}

func (n *processNode) Resume(ctx context.Context) error {
	if err := n.child.signal(syscall.SIGCONT); err != nil {
		return err
	}
	return n.child.settle(ctx, false)
}

func (n *processNode) Log() ([]byte, error) {
	body, err := os.ReadFile(n.child.log)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", n.Name(), err)
	}
	return body, nil
}

func (n *processNode) Metrics(ctx context.Context) (string, error) {
	return n.web.get(ctx, n.base+"/metrics", adminUser, n.password)
}

// fakeNode is the scripted target, as the run reads its store. It has no life of its own to play with.
type fakeNode struct {
	web      *web
	base     func(ctx context.Context) (string, error)
	password string
}

func (n *fakeNode) Name() string { return "target-1" }

func (n *fakeNode) Side() string { return Target }

func (n *fakeNode) Client() *client.Client { return n.ClientAs(fakeUser, n.password) }

func (n *fakeNode) ClientAs(user, password string) *client.Client {
	base, err := n.base(context.Background())
	if err != nil {
		base = nowhere
	}
	return n.web.client(base, user, password)
}

// nowhere is an address at which nothing answers: what a client gets for a node that has no address now.
const nowhere = "http://127.0.0.1:1"

func (n *fakeNode) Start(context.Context) error { return n.unsupported("start") }

func (n *fakeNode) Stop(context.Context) error { return n.unsupported("stop") }

func (n *fakeNode) Kill(context.Context) error { return n.unsupported("kill") }

func (n *fakeNode) Pause(context.Context) error { return n.unsupported("pause") }

func (n *fakeNode) Resume(context.Context) error { return n.unsupported("resume") }

func (n *fakeNode) unsupported(what string) error {
	return fmt.Errorf("%s of a fake: %w; its script cuts and hangs", what, ErrUnsupported)
}

func (n *fakeNode) Running() bool { return true }

func (n *fakeNode) Log() ([]byte, error) { return nil, nil }

func (n *fakeNode) Metrics(context.Context) (string, error) {
	return "", fmt.Errorf("metrics of a fake: %w", ErrUnsupported)
}
