package move

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// What the target has copied is on its disk before it may become the owner: a power loss at any step from the freeze on takes nothing of it,
// and one before finds a move that begins anew.
//
// covers: BRK-03, BRK-07
func TestAPowerLossAtTheTarget(t *testing.T) {
	for _, s := range Steps {
		t.Run(string(s), func(t *testing.T) {
			inBubble(t, func(_ *testing.T, r *rig) {
				b := r.nodes["b"]
				r.fill(records(0, 30))
				met := b.stopAt(s)
				r.begin()
				<-met
				b.kill()
				b.disk.DropUnsynced()
				b.start()
				r.arrived(records(0, 30))
			})
		})
	}
}

// A copy whose sync fails is thrown away, and the move begins again.
//
// covers: BRK-07
func TestACopyThatDoesNotSync(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		b, times := r.nodes["b"], 0
		r.fill(records(0, 30))
		b.moves.o.At = func(_ context.Context, s Step) {
			if s != Cleaned {
				return
			}
			if times++; times == 1 {
				b.disk.FailNext(vfs.OpSync, errors.New("the disk is gone"), "/00aa/0/")
			}
		}
		r.begin()
		r.arrived(records(0, 30))
		require.Equal(t, 2, times)
	})
}
