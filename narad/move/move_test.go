package move

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
)

// fill commits records to a.
func (r *rig) fill(list []string) {
	r.t.Helper()
	for _, payload := range list {
		require.NoError(r.t, r.nodes["a"].commit(payload))
	}
}

// arrived waits until b owns the partition with these records, and a has nothing of it.
func (r *rig) arrived(want []string) {
	r.t.Helper()
	a, b := r.nodes["a"], r.nodes["b"]
	r.eventually("b owns it", func() bool { return r.owner() == "b" })
	r.eventually("a has nothing of it", func() bool { return !a.hasFiles() })
	r.eventually("b serves", func() bool { c, q := b.holds(); return !c && !q && b.moves.Serves("00aa", 0) })
	require.Equal(r.t, want, b.stored())
	require.NoError(r.t, b.commit("later"))
	require.ErrorIs(r.t, a.commit("never"), errNotThere)
}

// stays waits until a serves with these records and b, when it runs, has nothing.
func (r *rig) stays(want []string) {
	r.t.Helper()
	a, b := r.nodes["a"], r.nodes["b"]
	r.eventually("a serves", func() bool { c, q := a.holds(); return !c && !q && a.moves.Serves("00aa", 0) })
	require.Equal(r.t, "a", r.owner())
	require.Equal(r.t, want, a.stored())
	r.eventually("b has nothing", func() bool { return b.moves == nil || !b.hasFiles() })
}

// covers: BRK-07, CUR-12
func TestAMoveTakesRecordsAndFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.nodes["a"], r.nodes["b"]
		r.fill(records(0, 40))
		a.write("fanout-c.offset", "position and marks")
		a.write("consumer.frontier", "acks")
		a.write("other", "stays")
		r.begin()
		r.arrived(records(0, 40))
		require.Equal(t, "position and marks", b.read("fanout-c.offset"))
		require.Equal(t, "acks", b.read("consumer.frontier"))
		_, err := b.disk.Stat("/topics/00aa/0/other")
		require.Error(t, err)
		r.do(meta.StartMove{TopicID: "00aa", From: "b", To: "a", MoveID: meta.NewID()})
		r.eventually("it is back", func() bool { return r.owner() == "a" && !b.hasFiles() && a.moves.Serves("00aa", 0) })
		require.Equal(t, append(records(0, 40), "later"), a.stored())
	})
}

// The outcome of a flip is not known: applied, dropped, or still on its way when the source has taken the attempt away. Whatever it was,
// one node owns the partition and has all of it, and nobody deleted anything meanwhile.
//
// covers: BRK-07
func TestAnAmbiguousFlip(t *testing.T) {
	t.Run("applied", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			r.fill(records(0, 10))
			r.lost = []string{"applied"}
			r.begin()
			r.arrived(records(0, 10))
			require.Equal(t, 1, r.flips)
		})
	})
	t.Run("dropped", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			r.fill(records(0, 10))
			r.lost = []string{"dropped", "dropped"}
			r.begin()
			r.arrived(records(0, 10))
			require.Equal(t, 3, r.flips, "the same flip again, no new attempt")
		})
	})
	t.Run("on its way while the target dies", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			a, b := r.nodes["a"], r.nodes["b"]
			r.fill(records(0, 10))
			r.lost = []string{"held"}
			met := b.stopAt(Proposed)
			r.begin()
			<-met
			b.kill()
			require.ErrorIs(t, a.commit("too early"), ErrFrozen)
			time.Sleep(FreezeTTL + time.Second)
			r.stays(records(0, 10))
			r.fill(records(10, 5))
			require.Error(t, r.apply(r.held[0]), "the late flip is refused")
			b.start()
			r.arrived(records(0, 15))
		})
	})
	t.Run("on its way while the source restarts", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			a, b := r.nodes["a"], r.nodes["b"]
			r.fill(records(0, 10))
			r.lost = []string{"held"}
			met := b.stopAt(Proposed)
			r.begin()
			<-met
			b.kill()
			r.leader(false)
			a.kill()
			a.start()
			time.Sleep(10 * time.Minute)
			require.ErrorIs(t, a.commit("too early"), ErrFrozen, "the flip may still come")
			require.False(t, a.moves.Serves("00aa", 0))
			r.leader(true)
			require.NoError(t, r.apply(r.held[0]), "and it does")
			b.start()
			r.arrived(records(0, 10))
		})
	})
}

// A target that dies leaves a partition that serves again: by the clock before the fence, by the leader's word behind it.
//
// covers: BRK-07, CUR-12
func TestATargetThatDies(t *testing.T) {
	for _, s := range Steps {
		t.Run(string(s), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a, b := r.nodes["a"], r.nodes["b"]
				r.fill(records(0, 10))
				met := b.stopAt(s)
				r.lost = []string{"last"}
				r.begin()
				<-met
				b.kill()
				r.leader(false)
				time.Sleep(FreezeTTL + time.Second)
				synctest.Wait()
				switch s {
				case Proposed:
					require.Equal(t, "b", r.owner())
					require.True(t, a.hasFiles(), "nothing is deleted without the leader")
				case Fenced:
					require.ErrorIs(t, a.commit("x"), ErrFrozen, "behind the fence the clock opens nothing")
				default:
					r.fill(records(10, 1))
					c, q := a.holds()
					require.False(t, c || q)
				}
				r.lost = nil
				r.leader(true)
				if s == Fenced {
					r.eventually("it serves", func() bool { return a.moves.Serves("00aa", 0) })
					r.fill(records(10, 1))
				}
				b.start()
				want := records(0, 11)
				if s == Proposed {
					want = want[:10]
				}
				r.arrived(want)
			})
		})
	}
}

// A move that an admin or the leader ends leaves the partition where it was, at once, and nothing at the target.
//
// covers: BRK-07
func TestAnAbort(t *testing.T) {
	for _, s := range Steps[:len(Steps)-1] {
		t.Run(string(s), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.fill(records(0, 10))
				met := r.nodes["b"].stopAt(s)
				r.begin()
				<-met
				mv, _ := r.move()
				began := time.Now()
				r.do(meta.EndMove{TopicID: "00aa", MoveID: mv.ID})
				r.stays(records(0, 10))
				require.Less(t, time.Since(began), FreezeTTL)
				r.fill(records(10, 1))
				r.begin()
				r.arrived(records(0, 11))
			})
		})
	}
}

// Records that the source takes while the target was slow are copied too; retention that passes the copy has it begin anew.
//
// covers: BRK-07
func TestASourceThatThawsAndTakesMore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.fill(records(0, 10))
		slow := true
		r.nodes["b"].moves.o.At = func(_ context.Context, s Step) {
			if s == Frozen && slow {
				slow = false
				time.Sleep(FreezeTTL + time.Second)
				for _, payload := range records(10, 3) {
					require.NoError(t, r.nodes["a"].commit(payload))
				}
			}
		}
		r.begin()
		r.arrived(records(0, 13))
	})
}

// A commit that is under way when the partition freezes is part of the copy.
//
// covers: BRK-07
func TestAFreezeWaitsForCommits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.nodes["a"]
		r.fill(records(0, 1))
		leave, err := a.moves.Enter("00aa", 0)
		require.NoError(t, err)
		r.begin()
		r.eventually("the gate is closed", func() bool { return a.commit("x") != nil })
		time.Sleep(5 * time.Second)
		require.Equal(t, "a", r.owner())
		p, err := a.store.Open("00aa", 0)
		require.NoError(t, err)
		_, err = p.Commit(t.Context(), records1("last"))
		require.NoError(t, err)
		leave()
		r.arrived(append(records(0, 1), "last"))
	})
}
