package move

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errUnknown  = wire.Refuse(wire.Unavailable, "the outcome is unknown: the change may still be applied")
	errNobody   = wire.Refuse(wire.Unavailable, "no leader; try again")
	errNotThere = errors.New("the node cannot be reached")
)

// rig is two nodes over one state: a owns the partition 0 of the topic t, b gets it.
type rig struct {
	t     *testing.T
	state *meta.State
	nodes map[string]*unit

	mu    sync.Mutex // guards what follows
	away  bool       // nobody leads
	lost  []string   // what becomes of the next flips: "applied", "last", "dropped" or "held"; all are answered as unknown
	held  []meta.Entry
	flips int
}

// unit is one node.
type unit struct {
	r      *rig
	id     string
	disk   *vfs.Mem
	store  *partition.Store
	moves  *Moves
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex // guards what follows
	held map[string]int
	step Step          // the one to stop at, once
	met  chan struct{} // closed there
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, state: meta.NewState(), nodes: map[string]*unit{}}
		r.do(meta.PutMember{Member: meta.Member{ID: "a"}})
		r.do(meta.PutMember{Member: meta.Member{ID: "b"}})
		r.do(meta.CreateTopic{Topic: meta.Topic{Name: "t", ID: "00aa", Partitions: 1, Nodes: []string{"a"}}})
		for _, id := range []string{"a", "b"} {
			r.nodes[id] = &unit{r: r, id: id, disk: vfs.NewMem()}
			r.nodes[id].start()
		}
		defer func() {
			for _, u := range r.nodes {
				u.kill()
			}
		}()
		test(t, r)
	})
}

func (r *rig) do(e meta.Entry) {
	r.t.Helper()
	require.NoError(r.t, r.apply(e))
}

func (r *rig) apply(e meta.Entry) error { return r.state.Apply(r.state.Applied()+1, e) }

// begin puts the move into the metadata.
func (r *rig) begin() {
	r.t.Helper()
	r.do(meta.StartMove{TopicID: "00aa", From: "a", To: "b", MoveID: meta.NewID()})
}

func (r *rig) owner() string { t, _ := r.state.Topic("t"); return t.NodeOf(0) }

func (r *rig) move() (meta.Move, bool) { t, _ := r.state.Topic("t"); return t.Move(0) }

// Propose is the leader's.
func (r *rig) Propose(ctx context.Context, e meta.Entry) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away || ctx.Err() != nil {
		return 0, errNobody
	}
	_, flip := e.(meta.FlipMove)
	if flip {
		r.flips++
	}
	if flip && len(r.lost) > 0 {
		what := r.lost[0]
		r.lost = r.lost[1:]
		switch what {
		case "applied", "last": // the last word of a leader
			r.away = what == "last"
			if err := r.apply(e); err != nil {
				return 0, err
			}
		case "held":
			r.held = append(r.held, e)
		}
		return 0, errUnknown
	}
	return r.state.Applied() + 1, r.apply(e)
}

// Current is a read index.
func (r *rig) Current(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return errNobody
	}
	return nil
}

// WaitApplied has nothing to wait for: both nodes read one state.
func (r *rig) WaitApplied(context.Context, uint64) error { return nil }

func (r *rig) leader(there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = !there
}

// Call reaches a node that runs.
func (r *rig) Call(ctx context.Context, node, op string, body, room []byte, limit time.Duration) ([]byte, error) {
	u := r.nodes[node]
	if u.moves == nil || ctx.Err() != nil {
		return nil, errNotThere
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if op != OpRead {
		return u.moves.Handle(op)(ctx, body)
	}
	head, records, done, err := u.moves.Read(ctx, body)
	if err != nil {
		return nil, err
	}
	defer done()
	return append(append(room[:0], head...), records...), nil
}

func (u *unit) start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.done, u.held = cancel, make(chan struct{}), map[string]int{}
	u.store = partition.NewStore(partition.StoreOptions{FS: u.disk, Dir: "/topics"})
	u.moves = New(Options{
		NodeID: u.id, State: u.r.state, Leader: u.r, Store: u.store, FS: u.disk, Cursors: cursors{u}, Consumers: consumers{u},
		Caller: u.r, Logger: slog.New(slog.DiscardHandler), At: u.at,
	})
	u.moves.Begin()
	m, done := u.moves, u.done
	go func() {
		defer close(done)
		_ = m.Run(ctx) // it returns nil
	}()
}

// kill ends the node, as a kill of its process: what it knew is gone.
func (u *unit) kill() {
	if u.moves == nil {
		return
	}
	u.moves = nil
	u.cancel()
	<-u.done
	require.NoError(u.r.t, u.store.Close())
}

// stopAt has the node's work stop at a step, once, until it is killed.
func (u *unit) stopAt(s Step) (met <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.step, u.met = s, make(chan struct{})
	return u.met
}

func (u *unit) at(ctx context.Context, s Step) {
	u.mu.Lock()
	stop := s == u.step
	if stop {
		u.step = ""
		close(u.met)
	}
	u.mu.Unlock()
	if stop {
		<-ctx.Done()
	}
}

// commit commits one record as node's rooms do.
func (u *unit) commit(payload string) error {
	leave, err := u.moves.Enter("00aa", 0)
	if err != nil {
		return err
	}
	defer leave()
	if u.r.owner() != u.id {
		return errNotThere
	}
	p, err := u.store.Open("00aa", 0)
	if err != nil {
		return err
	}
	_, err = p.Commit(context.Background(), []partition.Record{{Key: []byte("k"), Payload: []byte(payload)}})
	return err
}

// stored lists what the node has.
func (u *unit) stored() (out []string) {
	p, err := u.store.Open("00aa", 0)
	require.NoError(u.r.t, err)
	var s partition.Slab
	for next := p.Oldest(); next < p.HighWatermark(); next = s.Next {
		require.NoError(u.r.t, p.Read(next, 100, 1<<20, &s))
		for i := range s.Records {
			out = append(out, string(s.Records[i].Payload))
		}
	}
	return out
}

func (u *unit) hasFiles() bool {
	_, err := u.disk.Stat("/topics/00aa/0")
	return err == nil
}

func (u *unit) write(name, data string) {
	require.NoError(u.r.t, vfs.WriteFile(u.disk, "/topics/00aa/0/"+name, []byte(data), 0o600))
}

func (u *unit) read(name string) string {
	data, err := vfs.ReadFile(u.disk, "/topics/00aa/0/"+name)
	require.NoError(u.r.t, err)
	return string(data)
}

// holds tells whether cursors and consumers are held.
func (u *unit) holds() (cursors, consumers bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held["cursors"] > 0, u.held["consumers"] > 0
}

func (u *unit) hold(what string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held[what] = n
}

type cursors struct{ u *unit }

func (c cursors) Hold(context.Context, string, int) error {
	c.u.hold("cursors", 1)
	return nil
}
func (c cursors) Release(string, int) { c.u.hold("cursors", 0) }

type consumers struct{ u *unit }

func (c consumers) Hold(string, int) error {
	c.u.hold("consumers", 1)
	return nil
}
func (c consumers) Unhold(string, int) { c.u.hold("consumers", 0) }

// eventually waits in virtual time.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for range 6000 {
		synctest.Wait()
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(r.t, "this never came", what)
}

// records makes n payloads.
func records(from, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%06d", from+i))
	}
	return out
}

func records1(payload string) []partition.Record {
	return []partition.Record{{Payload: []byte(payload)}}
}
