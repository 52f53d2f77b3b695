package meta

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// What goes to a node whose heartbeats fail waits for one that does not, for as long as this node leads in that term and has the other one; an
// absence of another term says nothing, and the end of the connections ends every wait.
//
// covers: BRK-07
func TestWhoWaitsForANodeThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		_, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		term := s.Term()
		ending := make(chan struct{})
		r := &reaching{ending: ending, away: map[raft.ServerID]absence{}}
		var done chan error
		wait := func(id raft.ServerID, term uint64) {
			done = make(chan error, 1)
			go func() { done <- r.wait(id, term) }()
			synctest.Wait()
		}
		passes := func() {
			t.Helper()
			require.Len(t, done, 1)
			require.NoError(t, <-done)
		}
		wait("one", term)
		passes()

		r.beaten("one", term, false)
		r.beaten("one", term, false)
		wait("one", term+1)
		passes()
		wait("one", term)
		time.Sleep(lookAgain)
		require.ErrorIs(t, <-done, errAway, "Raft is not known yet")
		r.node.Store(s.raft)
		wait("one", term)
		time.Sleep(time.Hour)
		require.Empty(t, done)
		r.beaten("one", term, true)
		synctest.Wait()
		passes()

		r.beaten("two", term, false)
		wait("two", term)
		time.Sleep(lookAgain)
		require.ErrorIs(t, <-done, errAway, "Raft does not have it")
		r.beaten("one", term-1, false)
		wait("one", term-1)
		time.Sleep(lookAgain)
		require.ErrorIs(t, <-done, errAway, "it leads in another term")
		wait("one", term-1)
		r.beaten("one", term, false)
		synctest.Wait()
		passes()
		wait("one", term)
		close(ending)
		require.ErrorIs(t, <-done, errAway)
	})
}
