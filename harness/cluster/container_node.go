package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"
	testcontainers "github.com/testcontainers/testcontainers-go"

	"narad.example/narad/client"
)

// askLimit bounds a question to the engine for which the caller gave no context.
const askLimit = 10 * time.Second

// box is one container of a rig.
type box struct {
	name   string
	c      testcontainers.Container
	engine *testcontainers.DockerClient
	anew   func(over map[string]any) ([]byte, error) // a node's configuration with more laid over it
	idle   bool                                      // it was made and not started
	older  bool                                      // it was made as one that poses as an older release

	mu        sync.Mutex     // guards what follows; never held while waiting
	asked     bool           // its end was asked for
	published map[int]string // host:port by port inside, forgotten at each start: they change
}

// at returns where a port of the container is published now.
func (b *box) at(ctx context.Context, port int) (string, error) {
	b.mu.Lock()
	known := b.published[port]
	b.mu.Unlock()
	if known != "" {
		return known, nil
	}
	host, err := b.c.Host(ctx)
	if err != nil {
		return "", fmt.Errorf("address of %s: %w", b.name, err)
	}
	p, err := b.c.MappedPort(ctx, strconv.Itoa(port)+"/tcp")
	if err != nil {
		return "", fmt.Errorf("address of %s: %w", b.name, err)
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(p.Num())))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.published == nil {
		b.published = map[int]string{}
	}
	b.published[port] = address
	return address, nil
}

// expect says that the container's end is asked for, or no longer, and forgets the published ports.
func (b *box) expect(end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked, b.published = end, nil
}

func (b *box) expected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// state asks the engine.
func (b *box) state(ctx context.Context) (container.State, error) {
	res, err := b.engine.ContainerInspect(ctx, b.c.GetContainerID(), moby.ContainerInspectOptions{})
	if err != nil {
		return container.State{}, fmt.Errorf("state of %s: %w", b.name, err)
	}
	return *res.Container.State, nil
}

func (b *box) running() bool {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	s, err := b.state(ctx)
	return err == nil && s.Running
}

// logs is all that the container wrote, over all its starts.
func (b *box) logs(ctx context.Context) ([]byte, error) {
	rc, err := b.c.Logs(ctx)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", b.name, err)
	}
	body, err := io.ReadAll(rc)
	if err = errors.Join(err, rc.Close()); err != nil {
		return nil, fmt.Errorf("log of %s: %w", b.name, err)
	}
	return body, nil
}

// end runs stop and waits until the container is gone.
func (b *box) end(ctx context.Context, stop func(id string) error) error {
	s, err := b.state(ctx)
	if err != nil {
		return err
	}
	if !s.Running {
		return fmt.Errorf("%s does not run", b.name)
	}
	b.expect(true)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := b.engine.ContainerWait(ctx, b.c.GetContainerID(), moby.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	if err = stop(b.c.GetContainerID()); err != nil {
		return fmt.Errorf("end of %s: %w", b.name, err)
	}
	select {
	case <-gone.Result:
		return nil
	case err = <-gone.Error:
		return fmt.Errorf("end of %s: %w", b.name, err)
	}
}

// containerNode is a node that is a container. Its data is in the container's own layer, which stays over kill and start.
type containerNode struct {
	box      *box
	side     string
	web      *web
	password string
	spare    atomic.Bool // it has not joined yet
	older    atomic.Bool // the next start poses as an older release
	mover    *mover
}

func (n *containerNode) Name() string { return n.box.name }

func (n *containerNode) Side() string { return n.side }

func (n *containerNode) Client() *client.Client { return n.ClientAs(adminUser, n.password) }

func (n *containerNode) ClientAs(user, password string) *client.Client {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	base, err := n.base(ctx)
	if err != nil {
		base = nowhere // a node that is down has no published port
	}
	return n.web.client(base, user, password)
}

func (n *containerNode) base(ctx context.Context) (string, error) {
	address, err := n.box.at(ctx, apiPort)
	if err != nil {
		return "", err
	}
	return "http://" + address, nil
}

func (n *containerNode) Running() bool { return n.box.running() }

func (n *containerNode) Start(ctx context.Context) error {
	s, err := n.box.state(ctx)
	if err != nil {
		return err
	}
	if s.Running {
		return fmt.Errorf("%s runs already", n.Name())
	}
	if _, err = n.box.engine.ContainerStart(ctx, n.box.c.GetContainerID(), moby.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start of %s: %w", n.Name(), err)
	}
	n.box.expect(false)
	return n.ready(ctx)
}

func (n *containerNode) waits() bool { return n.spare.Load() }

// Join is Joiner.
func (n *containerNode) Join(ctx context.Context) error {
	if !n.spare.Swap(false) {
		return fmt.Errorf("%w: %s is no spare, or not any more", ErrTrouble, n.Name())
	}
	return n.Start(ctx)
}

// Older is Upgradable.
func (n *containerNode) Older() bool { return n.older.Load() }

// Upgrade is Upgradable. The environment of a container stays; the present release does not look at it.
func (n *containerNode) Upgrade(ctx context.Context) error {
	if n.Running() {
		return fmt.Errorf("%w: %s runs: a release is changed between two runs", ErrTrouble, n.Name())
	}
	if err := n.box.c.CopyToContainer(ctx, []byte(naradPath), releasePath, 0o644); err != nil {
		return fmt.Errorf("%w: the present release for %s: %w", ErrTrouble, n.Name(), err)
	}
	n.older.Store(false)
	return nil
}

// Move is Mover.
func (n *containerNode) Move(ctx context.Context, topic string, partition int, to string) error {
	return n.mover.move(ctx, n, topic, partition, to)
}

// Reconfigure is Reconfigurable.
func (n *containerNode) Reconfigure(ctx context.Context, over map[string]any) error {
	body, err := n.box.anew(over)
	if err == nil {
		err = n.box.c.CopyToContainer(ctx, body, configPath, 0o644)
	}
	if err != nil {
		return fmt.Errorf("%w: config of %s: %w", ErrTrouble, n.Name(), err)
	}
	return nil
}

// ready waits for /readyz, or for the container's end.
func (n *containerNode) ready(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := n.box.engine.ContainerWait(ctx, n.box.c.GetContainerID(), moby.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-gone.Result:
			close(ended)
		case err := <-gone.Error:
			_ = err // the context ended: nobody waits any more
		}
	})
	err := n.web.ready(ctx, n.Name(), "/readyz", n.base, ended)
	cancel()
	wg.Wait()
	return err
}

// stopGrace is how long a graceful stop may take before the engine kills; the caller's context bounds it too.
const stopGrace = 60

func (n *containerNode) Stop(ctx context.Context) error {
	return n.box.end(ctx, func(id string) error {
		grace := stopGrace
		_, err := n.box.engine.ContainerStop(ctx, id, moby.ContainerStopOptions{Timeout: &grace})
		return err
	})
}

func (n *containerNode) Kill(ctx context.Context) error {
	return n.box.end(ctx, func(id string) error {
		_, err := n.box.engine.ContainerKill(ctx, id, moby.ContainerKillOptions{Signal: "KILL"})
		return err
	})
}

func (n *containerNode) Pause(ctx context.Context) error {
	if _, err := n.box.engine.ContainerPause(ctx, n.box.c.GetContainerID(), moby.ContainerPauseOptions{}); err != nil {
		return fmt.Errorf("pause of %s: %w", n.Name(), err)
	}
	return nil
}

func (n *containerNode) Resume(ctx context.Context) error {
	if _, err := n.box.engine.ContainerUnpause(ctx, n.box.c.GetContainerID(), moby.ContainerUnpauseOptions{}); err != nil {
		return fmt.Errorf("resume of %s: %w", n.Name(), err)
	}
	return nil
}

func (n *containerNode) Log() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	return n.box.logs(ctx)
}

func (n *containerNode) Metrics(ctx context.Context) (string, error) {
	base, err := n.base(ctx)
	if err != nil {
		return "", err
	}
	return n.web.get(ctx, base+"/metrics", adminUser, n.password)
}
