package move

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// A move whose source cannot read its log, or whose target has no room, is ended by the target, and the partition stays; one that nobody leads is not.
//
// covers: BRK-07
func TestAMoveThatGetsNowhereIsGivenUp(t *testing.T) {
	for name, fault := range map[string]func(a, b *unit) (mend func()){
		"the source's log does not read": func(a, _ *unit) func() {
			broken := &vfs.Break{Op: vfs.OpRead, Err: errors.New("the disk is gone"), Match: "/00aa/0/"}
			a.disk.Break(broken)
			return func() { a.disk.Mend(broken) }
		},
		"the target's disk is full": func(_, b *unit) func() {
			b.disk.SetCapacity(1)
			return func() { b.disk.SetCapacity(0) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a, b := r.nodes["a"], r.nodes["b"]
				r.fill(records(0, 30))
				mend := fault(a, b)
				r.begin()
				time.Sleep(GiveUpAfter - time.Second)
				_, moves := r.move()
				require.True(t, moves)
				r.leader(false)
				time.Sleep(10 * time.Minute)
				r.leader(true)
				time.Sleep(GiveUpAfter - time.Second)
				_, moves = r.move()
				require.True(t, moves, "without a leader there is no verdict")
				time.Sleep(maxRetry + 2*time.Second)
				_, moves = r.move()
				require.False(t, moves)
				mend()
				r.stays(records(0, 30))
				r.begin()
				r.arrived(records(0, 30))
			})
		})
	}
}
