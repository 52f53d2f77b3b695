package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
)

// leading is a replica whose node leads. Raft's servers are those in raft.
type leading struct {
	replica
	raft *[]meta.Server
	lead *string // empty once it stepped down
	log  *unapplied
}

// unapplied is what the leader has in its log and not yet in its state.
type unapplied struct {
	entries []meta.Entry
	fails   atomic.Bool // the barrier does
}

// Barrier applies what is in the log.
func (l leading) Barrier(ctx context.Context) error {
	if l.log.fails.Load() {
		return errors.New("no leader")
	}
	for _, e := range l.log.entries {
		if _, err := l.Propose(ctx, e); err != nil {
			return err
		}
	}
	l.log.entries = nil
	return nil
}

func (l leading) Term() uint64 { return 1 }

func (l leading) IsLeader() bool         { return *l.lead != "" }
func (l leading) Servers() []meta.Server { return *l.raft }

func (l leading) Promote(_ context.Context, id string) error {
	for i := range *l.raft {
		if (*l.raft)[i].ID == id {
			(*l.raft)[i].Waits = false
		}
	}
	return nil
}

func (l leading) RemoveServer(_ context.Context, id string) error {
	*l.raft = slices.DeleteFunc(slices.Clone(*l.raft), func(s meta.Server) bool { return s.ID == id })
	return nil
}

func (l leading) StepDown(context.Context) error {
	*l.lead = ""
	return nil
}

func (l leading) Leader() (id, rpcAddr string, ok bool) {
	return *l.lead, *l.lead + ":2", *l.lead != ""
}

type stage struct {
	t    *testing.T
	c    *Controller
	meta leading
	dead map[string]bool
	left map[string]int64 // in the ingress of members; below 0 does not answer
	told bool             // the last one that was asked knew that it leaves
	now  time.Time
}

func newStage(t *testing.T, members ...string) *stage {
	lead := members[0]
	s := &stage{
		t: t, meta: leading{replica{meta.NewState()}, &[]meta.Server{}, &lead, &unapplied{}}, dead: map[string]bool{}, left: map[string]int64{},
		now: time.Unix(0, 0),
	}
	for _, id := range members {
		s.join(id, false)
	}
	s.c = &Controller{
		Meta: s.meta, Node: lead, Dead: func(id string) bool { return s.dead[id] }, Logger: slog.New(slog.DiscardHandler),
		Backlog: func(_ context.Context, member, drain string) (int64, error) {
			m, _ := s.meta.Member(member)
			require.Equal(t, m.Drain, drain)
			s.told = m.Leaving
			if s.left[member] < 0 {
				return 0, errors.New("silent")
			}
			return s.left[member], nil
		},
	}
	return s
}

func (s *stage) join(id string, waits bool) {
	s.t.Helper()
	*s.meta.raft = append(*s.meta.raft, meta.Server{ID: id, Addr: id + ":1", Waits: waits})
	s.do(meta.PutMember{Member: meta.Member{ID: id}})
}

func (s *stage) do(e meta.Entry) {
	s.t.Helper()
	_, err := s.meta.Propose(s.t.Context(), e)
	require.NoError(s.t, err)
}

func (s *stage) topic(name string, nodes ...string) {
	s.t.Helper()
	s.do(meta.CreateTopic{Topic: meta.Topic{Name: name, ID: "id-" + name, Partitions: len(nodes), Nodes: nodes}})
}

// look lets time pass and the controller look.
func (s *stage) look(d time.Duration) {
	s.now = s.now.Add(d)
	s.c.look(s.t.Context(), s.now)
}

// moves lists the moves as "topic/partition from>to".
func (s *stage) moves() (out []string) {
	for _, t := range s.meta.Topics() {
		for _, mv := range t.Moves {
			out = append(out, fmt.Sprintf("%s/%d %s>%s", t.Name, mv.Partition, t.NodeOf(mv.Partition), mv.To))
		}
	}
	return out
}

// arrive flips every move.
func (s *stage) arrive() {
	for _, t := range s.meta.Topics() {
		for _, mv := range t.Moves {
			s.do(meta.ClaimMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID, Was: mv.Attempt, Attempt: "x"})
			s.do(meta.FlipMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID, Attempt: "x", From: t.NodeOf(mv.Partition)})
		}
	}
}

func (s *stage) loads() map[string]int {
	out := map[string]int{}
	for _, t := range s.meta.Topics() {
		for _, n := range t.Nodes {
			out[n]++
		}
	}
	return out
}

// A member that joined gets its fair share after a minute, one partition at a time from each node, spread over the topics; then all rest.
//
// covers: BRK-07
func TestANewMemberGetsItsShare(t *testing.T) {
	s := newStage(t, "a", "b")
	for i := range 3 {
		s.topic(fmt.Sprint("t", i), "a", "b", "a", "b")
	}
	s.look(0)
	s.look(time.Hour)
	require.Empty(t, s.moves(), "nothing is uneven")
	s.do(meta.PutMember{Member: meta.Member{ID: "c"}})
	s.look(0)
	s.look(59 * time.Second)
	require.Empty(t, s.moves(), "a minute is not over")
	s.look(time.Second)
	require.Equal(t, []string{"t0/2 a>c", "t1/3 b>c"}, s.moves())
	s.look(time.Second)
	require.Len(t, s.moves(), 2, "one at a time from each node")
	s.arrive()
	s.look(time.Second)
	require.Len(t, s.moves(), 2, "no minute between two")
	s.arrive()
	require.Equal(t, map[string]int{"a": 4, "b": 4, "c": 4}, s.loads())
	s.look(time.Second)
	s.look(time.Hour)
	require.Empty(t, s.moves())
	for _, topic := range s.meta.Topics() {
		require.Contains(t, topic.Nodes, "c", "spread over the topics")
	}
}

// A dead node keeps its partitions and gets none; a move from or to it is ended.
//
// covers: BRK-07
func TestTheDeadMoveNothing(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	s.topic("t", "a", "a", "a", "b", "b")
	s.dead["c"] = true
	s.look(0)
	s.look(time.Minute)
	require.Empty(t, s.moves(), "c alone has less than its share")
	s.dead["c"] = false
	s.look(0)
	s.look(time.Minute)
	require.Equal(t, []string{"t/2 a>c"}, s.moves())
	s.look(time.Second)
	require.Len(t, s.moves(), 1, "it goes on while both live")
	s.dead["c"] = true
	s.look(time.Second)
	require.Empty(t, s.moves(), "its target is dead")
	s.dead["c"] = false
	s.look(0)
	s.look(time.Minute)
	require.Len(t, s.moves(), 1)
	s.dead["a"] = true
	s.look(time.Second)
	require.NotContains(t, s.moves(), "t/2 a>c", "its source is dead")
	require.Equal(t, 3, s.loads()["a"], "its partitions stay")
}
