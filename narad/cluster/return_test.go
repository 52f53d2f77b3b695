package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// caughtUpWithin is how soon a follower that can be reached again has what was committed meanwhile: the leader's next heartbeat, which comes at
// least twice a second, and what it then sends.
const caughtUpWithin = time.Second

// A follower that comes back has the log within a second, however long it was away, out of the log or by a snapshot.
//
// covers: BRK-06, BRK-07
func TestAFollowerThatComesBackIsServedAtOnce(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		leader := s.settled()
		away := s.other(leader)
		topics := 0
		for _, absence := range []time.Duration{time.Second, time.Minute, 63 * time.Second, time.Hour, time.Hour + 5*time.Second} {
			s.stop(away)
			for range 1 + topics%2*20 {
				topics++
				_, err := s.nodes[leader].store.Propose(t.Context(), someTopic(fmt.Sprint("t", topics)))
				require.NoError(t, err)
			}
			if topics%2 == 0 {
				require.NoError(t, s.nodes[leader].store.Snapshot())
			}
			time.Sleep(absence)
			back, start := s.start(away), time.Now()
			require.NoError(t, back.store.WaitApplied(t.Context(), s.nodes[leader].store.Applied()))
			require.LessOrEqual(t, time.Since(start), caughtUpWithin, "after %v", absence)
			s.settled()
			time.Sleep(2 * time.Second) // Raft learns from its answers what it holds
		}
	})
}

// A leader that steps down hands the lead to a node that answers, whichever of the others is away; and one that comes back to another leader is
// served at once too.
//
// covers: BRK-07
func TestTheLeadIsHandedToOneThatAnswers(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		for _, away := range []string{"n1", "n2", "n3"} {
			leader := s.settled()
			if leader == away {
				require.NoError(t, s.nodes[leader].store.StepDown(t.Context()))
				leader = s.settled()
			}
			s.stop(away)
			time.Sleep(time.Minute)
			require.NoError(t, s.nodes[leader].store.StepDown(t.Context()), "%s is away", away)
			s.until("another leader", func() bool { return s.leads() != "" && s.leads() != leader })
			time.Sleep(time.Minute)
			back, start := s.start(away), time.Now()
			require.NoError(t, back.store.WaitApplied(t.Context(), s.nodes[s.leads()].store.Applied()))
			require.LessOrEqual(t, time.Since(start), caughtUpWithin)
		}
	})
}

// leads is the node that leads, empty while none does.
func (s *sim) leads() string {
	for id, n := range s.nodes {
		if n.store.IsLeader() {
			return id
		}
	}
	return ""
}

// A write reaches every node at once, also one that nothing follows: whoever asked a follower does not wait for Raft's next message.
//
// covers: BRK-06, BRK-07
func TestAWriteIsHeardOfAtOnce(t *testing.T) {
	inSim(t, func(t *testing.T, s *sim) {
		leader := s.settled()
		for i := range 20 {
			time.Sleep(time.Second)
			start := time.Now()
			index, err := s.follower(leader).store.Propose(t.Context(), someTopic(fmt.Sprint("t", i)))
			require.NoError(t, err)
			for _, n := range s.nodes {
				require.NoError(t, n.store.WaitApplied(t.Context(), index))
			}
			require.Less(t, time.Since(start), 10*time.Millisecond)
		}
	})
}
