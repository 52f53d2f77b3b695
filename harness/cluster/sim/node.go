package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/harness/cluster"
	"narad.example/narad/client"
	"narad.example/narad/config"
	"narad.example/narad/node"
	"narad.example/narad/vfs"
)

// apiPort is where every node of the simulation listens.
const apiPort = "7942"

// simNode is one node in this process. Its file system outlives its runs, as a disk does.
type simNode struct {
	name, side string
	host       *Host
	read       func(over map[string]any) (config.Config, error) // the configuration with more laid over it
	secrets    config.Secrets
	fs         *vfs.Mem
	raftDir    string
	seed       uint64
	log        *log
	http       *http.Client
	password   string
	clock      wallClock
	lastWord   lastWord

	spare   atomic.Bool // it has not joined yet
	older   atomic.Bool // the next start poses as a release before remotes
	starts  uint64      // so that no life makes the request IDs of another; of the one who starts the node
	mu      sync.Mutex  // guards running and config; never held while a node starts or ends
	running *node.Node
	config  config.Config // of the next start
}

// Name is the node's name, such as source-1.
func (n *simNode) Name() string { return n.name }

// Side is source or target.
func (n *simNode) Side() string { return n.side }

// Client talks to the node as admin.
func (n *simNode) Client() *client.Client { return n.ClientAs("admin", n.password) }

// ClientAs talks to the node as a user.
func (n *simNode) ClientAs(user, password string) *client.Client {
	return client.New(client.Options{BaseURL: "http://" + n.name + ":" + apiPort, User: user, Password: password, HTTP: n.http})
}

// errState is the cause when a node is asked for what its state does not allow.
func (n *simNode) errState(what string) error {
	return fmt.Errorf("%w: %s %s", cluster.ErrTrouble, n.name, what)
}

// readyWait is how long, in virtual time, the nodes of a new cluster get to find each other.
const readyWait = time.Minute

// readyPatience is how long a start waits for readiness that depends on other nodes.
const readyPatience = 10 * time.Second

// awaitReady returns once the node says that it is ready.
func (n *simNode) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		_, err := n.Client().Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s is not ready: %w", cluster.ErrTrouble, n.name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Start builds the node over the disk that its last run left. A node of a cluster gets readyPatience to be ready: it
// needs a leader, and with it other nodes that may be started after it.
func (n *simNode) Start(ctx context.Context) error {
	if n.Running() {
		return n.errState("runs already")
	}
	n.fs.Thaw()
	n.starts++
	started, err := node.Start(ctx, node.Options{
		Config: n.settings(), Secrets: n.secrets, Network: n.host, FS: n.fs, RaftDir: n.raftDir, Fast: true, Seed: n.seed + n.starts<<32, Now: n.clock.now,
		Unaudited: n.lastWord.at, Older: n.older.Load(),
		Logger: slog.New(slog.NewJSONHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return fmt.Errorf("%w: starting %s: %w", cluster.ErrTrouble, n.name, err)
	}
	n.set(started)
	if len(n.settings().Cluster.Peers) == 0 {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	_ = n.awaitReady(patient) // alone it may have nobody to be ready with
	return nil
}

// Join starts a spare (cluster.Joiner).
func (n *simNode) Join(ctx context.Context) error {
	if !n.spare.Swap(false) {
		return n.errState("is no spare, or not any more")
	}
	return n.Start(ctx)
}

// Older tells whether the node poses as a release before remotes (cluster.Upgradable).
func (n *simNode) Older() bool { return n.older.Load() }

// Upgrade has later starts be of the present release (cluster.Upgradable).
func (n *simNode) Upgrade(context.Context) error {
	if n.Running() {
		return n.errState("runs: a release is changed between two runs")
	}
	n.older.Store(false)
	return nil
}

// StartSlowly starts the node while no byte comes to it or from it (cluster.Slow).
func (n *simNode) StartSlowly(ctx context.Context, still time.Duration) error {
	n.host.Freeze(true)
	awake := make(chan struct{})
	go func() {
		defer close(awake)
		t := time.NewTimer(still)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		n.host.Freeze(false)
	}()
	err := n.Start(ctx)
	<-awake
	if err != nil || len(n.settings().Cluster.Peers) == 0 {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	_ = n.awaitReady(patient) // as Start, whose patience was over perhaps
	return nil
}

// Reconfigure gives the next start another configuration (cluster.Reconfigurable).
func (n *simNode) Reconfigure(_ context.Context, over map[string]any) error {
	if n.Running() {
		return n.errState("runs: a configuration is read at a start")
	}
	c, err := n.read(over)
	if err != nil {
		return fmt.Errorf("%w: configuration of %s: %w", cluster.ErrTrouble, n.name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.config = c
	return nil
}

func (n *simNode) settings() config.Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.config
}

func (n *simNode) set(to *node.Node) (was *node.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was, n.running = n.running, to
	return was
}

// Stop ends the node gracefully.
func (n *simNode) Stop(ctx context.Context) error {
	if was := n.set(nil); was != nil {
		return was.Stop(ctx)
	}
	return n.errState("does not run")
}

// Kill is SIGKILL: nothing more reaches the disk, every connection is reset, then the goroutines end.
func (n *simNode) Kill(context.Context) error {
	was := n.set(nil)
	if was == nil {
		return n.errState("does not run")
	}
	n.fs.Freeze()
	n.log.mute(true)
	n.host.Freeze(false)
	n.host.Cut()
	n.lastWord.letGo() // what was held can reach nobody any more
	was.Kill()
	n.log.mute(false)
	return nil
}

// Pause holds every byte from and to the node.
func (n *simNode) Pause(context.Context) error {
	if !n.Running() {
		return n.errState("does not run")
	}
	n.host.Freeze(true)
	return nil
}

// Resume lets the bytes go.
func (n *simNode) Resume(context.Context) error {
	n.host.Freeze(false)
	return nil
}

// Running tells whether the node is there.
func (n *simNode) Running() bool {
	return n.present() != nil
}

// Move begins to move a partition (cluster.Mover).
func (n *simNode) Move(ctx context.Context, topic string, partition int, to string) error {
	running := n.present()
	if running == nil {
		return n.errState("does not run")
	}
	return running.Move(ctx, topic, partition, to)
}

// StepDown hands the lead over (cluster.Stepper).
func (n *simNode) StepDown(ctx context.Context) error {
	running := n.present()
	if running == nil {
		return n.errState("does not run")
	}
	return running.StepDown(ctx)
}

// Term is Raft's (cluster.Stepper).
func (n *simNode) Term() uint64 {
	if running := n.present(); running != nil {
		return running.Term()
	}
	return 0
}

// present is the node while it runs, nil else.
func (n *simNode) present() *node.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running
}

// Log is what the node has logged so far.
func (n *simNode) Log() ([]byte, error) { return n.log.bytes(), nil }

// Metrics is the node's metrics page.
func (n *simNode) Metrics(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.name+":"+apiPort+"/metrics", nil)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth("admin", n.password)
	res, err := n.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics of %s: status %d", n.name, res.StatusCode)
	}
	return string(body), err
}

// failure is why the node ended by itself, nil while it runs or after it was ended on purpose.
func (n *simNode) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running == nil {
		return nil
	}
	return n.running.Failure()
}

// log is a node's output over all its starts, in memory and in its file of the run folder.
type log struct {
	mu    sync.Mutex // guards everything below
	file  *os.File
	all   bytes.Buffer
	muted bool
}

func newLog(path string) (*log, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &log{file: f}, nil
}

// Write takes one line. While muted it takes nothing: a killed process logs nothing.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.muted {
		return len(p), nil
	}
	_, _ = l.all.Write(p)
	return l.file.Write(p)
}

func (l *log) mute(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted = on
}

func (l *log) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.all.Bytes())
}
