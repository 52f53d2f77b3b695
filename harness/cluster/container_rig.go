package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/api/types/image"
	moby "github.com/moby/moby/client"
	testcontainers "github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"

	"narad.example/fakes"
	"narad.example/harness/ledger"
)

type imageSummary = image.Summary

// containerRig is a rig of containers.
type containerRig struct {
	troubles
	*meshed // nil without two nodes on a side
	engine  *testcontainers.DockerClient
	spec    Spec
	labels  map[string]string
	secrets secrets
	remote  Remote
	web     *web
	nets    []*testcontainers.DockerNetwork
	order   map[string][]string // names of the nodes by side
	nodes   map[string][]Node
	farEnd  string // the container of the tap or the fake
	link    *toxiproxyLink

	reader  *fakes.Reader
	reading chan struct{} // one reader at a time: a token, since reading waits for the network

	stop    context.CancelFunc // ends the watch over the engine's events
	watcher sync.WaitGroup

	mu    sync.Mutex // guards boxes while the parts start at once
	boxes map[string]*box
}

func newContainerRig(e *testcontainers.DockerClient, spec Spec) *containerRig {
	if spec.Epoch.IsZero() {
		spec.Epoch = time.Now()
	}
	r := &containerRig{
		engine: e, spec: spec, labels: mine(), secrets: newSecrets(), order: map[string][]string{}, nodes: map[string][]Node{},
		boxes: map[string]*box{}, reading: make(chan struct{}, 1),
	}
	r.labels[labelSession] = session()
	return r
}

func newNetwork(ctx context.Context, internal bool, labels map[string]string) (*testcontainers.DockerNetwork, error) {
	opts := []network.NetworkCustomizer{network.WithLabels(labels)}
	if internal {
		opts = append(opts, network.WithInternal())
	}
	return network.New(ctx, opts...)
}

func (r *containerRig) add(b *box) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boxes[b.name] = b
}

func (r *containerRig) box(name string) *box {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.boxes[name]
}

// arrange makes the nodes once all containers are there.
func (r *containerRig) arrange() {
	for side, names := range r.order {
		for _, name := range names {
			b := r.box(name)
			n := &containerNode{
				box: b, side: side, web: r.web, password: r.secrets.admin, mover: &mover{secret: r.secrets.cluster[side], at: r.rpcs(side)},
			}
			n.spare.Store(b.idle)
			n.older.Store(b.older)
			r.nodes[side] = append(r.nodes[side], n)
		}
	}
	r.reader = &fakes.Reader{HTTP: r.web.http}
	if r.spec.Fake != nil {
		far := r.box(r.farEnd)
		r.nodes[Target] = []Node{&fakeNode{web: r.web, password: r.secrets.fake, base: func(ctx context.Context) (string, error) {
			address, err := far.at(ctx, linkPort)
			return "https://" + address, err
		}}}
	}
}

// watch follows the engine's events and reports every container that ends without having been asked to.
func (r *containerRig) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	feed := r.engine.Events(ctx, moby.EventsListOptions{
		Filters: make(moby.Filters).Add("label", labelSession+"="+r.labels[labelSession]).Add("event", string(events.ActionDie)),
	})
	r.watcher.Go(func() {
		for {
			select {
			case m := <-feed.Messages:
				name := m.Actor.Attributes[labelNode]
				if b := r.box(name); b == nil || !b.expected() {
					r.troubles.add("%s ended by itself: exit code %s", name, m.Actor.Attributes["exitCode"])
				}
			case err := <-feed.Err:
				if ctx.Err() == nil {
					r.troubles.add("the engine's events ended: %v", err)
				}
				return
			}
		}
	})
}

func (r *containerRig) Nodes(side string) []Node { return joined(r.nodes[side]) }

func (r *containerRig) Node(name string) (Node, error) { return find(r.nodes, name) }

func (r *containerRig) Link() Link { return r.link }

func (r *containerRig) Remote() Remote { return r.remote }

func (r *containerRig) Admin() (user, password string) { return adminUser, r.secrets.admin }

func (r *containerRig) Secrets() []string { return r.secrets.list() }

// Wire reads the control endpoint of the tap or the fake.
func (r *containerRig) Wire(ctx context.Context) (list []ledger.WireRequest, err error) {
	err = r.control(ctx, func(base string) error {
		list, err = r.reader.Requests(ctx, base)
		return err
	})
	return list, err
}

// Steps reports the use of the fake's script steps.
func (r *containerRig) Steps(ctx context.Context) (list []ledger.Step, err error) {
	if r.spec.Fake == nil {
		return nil, nil
	}
	err = r.control(ctx, func(base string) error {
		list, err = r.reader.Steps(ctx, base)
		return err
	})
	return list, err
}

// Show and Met are Faced, through the same endpoint.
func (r *containerRig) Show(ctx context.Context, face string) error {
	return r.control(ctx, func(base string) error { return r.reader.Show(ctx, base, face) })
}

func (r *containerRig) Met(ctx context.Context) (met map[string]fakes.FaceCount, err error) {
	err = r.control(ctx, func(base string) error {
		met, err = r.reader.Met(ctx, base)
		return err
	})
	return met, err
}

func (r *containerRig) control(ctx context.Context, read func(base string) error) error {
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return fmt.Errorf("tap control: %w", ctx.Err())
	}
	address, err := r.box(r.farEnd).at(ctx, controlPort)
	if err == nil {
		err = read("http://" + address)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTrouble, err)
	}
	return nil
}

// Close saves the logs and removes containers and networks. It also works on a rig that was built halfway.
func (r *containerRig) Close(ctx context.Context) error {
	errs := r.removeAll(ctx)
	for _, n := range r.nets {
		_, err := r.engine.NetworkRemove(ctx, n.ID, moby.NetworkRemoveOptions{})
		errs = errors.Join(errs, err)
	}
	if r.stop != nil {
		r.stop()
		r.watcher.Wait()
	}
	if r.link != nil {
		r.link.close()
	}
	if r.web != nil {
		r.web.close()
	}
	if errs = errors.Join(errs, r.engine.Close()); errs != nil {
		return fmt.Errorf("%w: close: %w", ErrTrouble, errs)
	}
	return nil
}

// removeAll saves the log of every container and removes it, all at once.
func (r *containerRig) removeAll(ctx context.Context) error {
	r.mu.Lock()
	boxes := r.boxes
	r.mu.Unlock()
	var wg sync.WaitGroup
	results := make(chan error, len(boxes))
	for _, b := range boxes {
		b.expect(true)
		wg.Go(func() {
			saved := r.save(ctx, b)
			_, err := r.engine.ContainerRemove(ctx, b.c.GetContainerID(), moby.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			results <- errors.Join(saved, err)
		})
	}
	wg.Wait()
	close(results)
	var errs error
	for err := range results {
		errs = errors.Join(errs, err)
	}
	return errs
}

// save writes a container's log into the run folder.
func (r *containerRig) save(ctx context.Context, b *box) error {
	if r.spec.Dir == "" {
		return nil
	}
	body, err := b.logs(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(r.spec.Dir, "nodes", b.name+".log")
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("log of %s: %w", b.name, err)
	}
	if err = os.WriteFile(path, body, 0o644); err != nil {
		return fmt.Errorf("log of %s: %w", b.name, err)
	}
	return nil
}
