package cluster

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	testcontainers "github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// Labels of everything that a rig makes in the engine.
const (
	labelKind    = "narad.chaos"         // rig or image
	labelHost    = "narad.chaos.host"    // the machine of the harness: process numbers mean something there alone
	labelOwner   = "narad.chaos.owner"   // the harness's process
	labelSession = "narad.chaos.session" // the rig
	labelNode    = "narad.chaos.node"
)

const (
	imageRepo = "narad-chaos"
	keptImage = 3 // images of other builds that Sweep leaves, the newest
)

// pingLimit bounds the question whether an engine is there.
const pingLimit = 5 * time.Second

// environment sets what testcontainers must know before it is first used, unless somebody did: no reaper, which is an image
// that cannot be pulled, and where a local engine's published ports are, which it guesses wrong inside a container.
var environment = sync.OnceValue(func() error {
	err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	remote := strings.HasPrefix(os.Getenv("DOCKER_HOST"), "tcp:")
	if os.Getenv("TESTCONTAINERS_HOST_OVERRIDE") == "" && !remote {
		err = errors.Join(err, os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"))
	}
	tclog.SetDefault(tclog.NewNoopLogger())
	return err
})

// engine connects to the container engine and asks it for a sign of life.
func engine(ctx context.Context) (*testcontainers.DockerClient, error) {
	if err := environment(); err != nil {
		return nil, fmt.Errorf("%w: environment: %w", ErrTrouble, err)
	}
	e, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: no container engine: %w", ErrTrouble, err)
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	if _, err = e.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the container engine does not answer: %w", ErrTrouble, err), e.Close())
	}
	return e, nil
}

// images builds each image once.
type images struct {
	turn chan struct{} // one build at a time: a token, since a build waits for the engine
}

func newImages() *images { return &images{turn: make(chan struct{}, 1)} }

// ensure returns the name of the image that holds exactly these binaries, and builds it when the engine has none.
func (im *images) ensure(ctx context.Context, e *testcontainers.DockerClient, b Binaries) (string, error) {
	select {
	case im.turn <- struct{}{}:
		defer func() { <-im.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("image: %w", ctx.Err())
	}
	sum := sha256.New()
	binaries := b.named()
	for _, name := range slices.Sorted(maps.Keys(binaries)) { // in one order: the sum names the image
		path := binaries[name]
		if err := errors.Join(static(path), copyTo(sum, path)); err != nil {
			return "", err
		}
	}
	tag := hex.EncodeToString(sum.Sum(nil))[:16]
	name := imageRepo + ":" + tag
	if _, err := e.ImageInspect(ctx, name); err == nil {
		return name, nil
	}
	return name, buildImage(ctx, b, tag)
}

// static refuses a binary that asks for a loader: an image made from nothing has none, and the engine would only say that a
// file is missing.
func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%w: image: %s: %w", ErrTrouble, filepath.Base(path), err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%w: image: %s is linked dynamically; build it with CGO_ENABLED=0", ErrTrouble, filepath.Base(path))
		}
	}
	return nil
}

func copyTo(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: image: %w", ErrTrouble, err)
	}
	defer func() { _ = f.Close() }()
	if _, err = io.Copy(w, f); err != nil {
		return fmt.Errorf("%w: image: %w", ErrTrouble, err)
	}
	return nil
}

// named are the binaries of an image by their names there.
func (b *Binaries) named() map[string]string {
	all := map[string]string{filepath.Base(naradPath): b.Narad, "chaos": b.Chaos}
	if b.Older != "" {
		all[filepath.Base(olderPath)] = b.Older
	}
	return all
}

// buildImage lays the binaries beside a Dockerfile that starts from nothing.
func buildImage(ctx context.Context, b Binaries, tag string) error {
	dir, err := os.MkdirTemp("", "narad-chaos-image-")
	if err != nil {
		return fmt.Errorf("%w: image: %w", ErrTrouble, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	dockerfile := "FROM scratch\nLABEL " + labelKind + "=image\nCOPY " + strings.Join(slices.Sorted(maps.Keys(b.named())), " ") + " /\n"
	if err = os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
		return fmt.Errorf("%w: image: %w", ErrTrouble, err)
	}
	for name, path := range b.named() {
		out, oerr := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o755)
		if oerr != nil {
			return fmt.Errorf("%w: image: %w", ErrTrouble, oerr)
		}
		if err = errors.Join(copyTo(out, path), out.Close()); err != nil {
			return err
		}
	}
	p, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("%w: image: %w", ErrTrouble, err)
	}
	_, err = p.BuildImage(ctx, &testcontainers.ContainerRequest{
		FromDockerfile: testcontainers.FromDockerfile{Context: dir, Repo: imageRepo, Tag: tag, KeepImage: true},
	})
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("%w: image: %w", ErrTrouble, err)
	}
	return nil
}

// mine are the labels of this harness.
func mine() map[string]string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return map[string]string{labelKind: "rig", labelHost: host, labelOwner: self().String()}
}

// orphan tells whether labels belong to a harness of this machine that is gone.
func orphan(labels map[string]string) bool {
	return labels[labelHost] == mine()[labelHost] && !parseIdentity(labels[labelOwner]).alive()
}

// sweepEngine removes the containers, networks and old images of harnesses that are gone.
func sweepEngine(ctx context.Context, e *testcontainers.DockerClient) error {
	for try := 1; ; try++ {
		err := sweepOnce(ctx, e)
		if err == nil || try == sweepTries {
			return err
		}
		select { // what the killed harness had asked for last may still be coming up
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// sweepTries bounds how often a sweep begins anew: the engine finishes what a killed client asked for after the client is gone.
const sweepTries = 5

func sweepOnce(ctx context.Context, e *testcontainers.DockerClient) error {
	rigs := make(client.Filters).Add("label", labelKind+"=rig")
	list, err := e.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: rigs})
	if err != nil {
		return fmt.Errorf("%w: sweep: %w", ErrTrouble, err)
	}
	var errs error
	for _, c := range list.Items {
		if orphan(c.Labels) {
			_, err = e.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			errs = errors.Join(errs, err)
		}
	}
	nets, err := e.NetworkList(ctx, client.NetworkListOptions{Filters: rigs})
	errs = errors.Join(errs, err)
	for _, n := range nets.Items {
		if orphan(n.Labels) {
			_, err = e.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
			errs = errors.Join(errs, err)
		}
	}
	old, err := e.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", labelKind+"=image")})
	errs = errors.Join(errs, err)
	slices.SortFunc(old.Items, func(a, b imageSummary) int { return int(b.Created - a.Created) })
	for _, im := range old.Items[min(len(old.Items), keptImage):] {
		_, _ = e.ImageRemove(ctx, im.ID, client.ImageRemoveOptions{}) // one in use stays
	}
	if errs != nil {
		return fmt.Errorf("%w: sweep: %w", ErrTrouble, errs)
	}
	return nil
}
