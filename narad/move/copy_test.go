package move

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/partition"
)

// slow is a network on which each read takes a while; it notes how many are on it at once.
type slow struct {
	Caller
	mu        sync.Mutex // guards what follows
	now, most int
}

func (s *slow) Call(ctx context.Context, node, op string, body, room []byte, limit time.Duration) ([]byte, error) {
	if op == OpRead {
		s.mu.Lock()
		s.now++
		s.most = max(s.most, s.now)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.now--
		}()
		time.Sleep(10 * time.Millisecond)
	}
	return s.Caller.Call(ctx, node, op, body, room, limit)
}

// A copy has more than one question on its way, and comes whole and in order whatever size records have and wherever the source's segments end.
//
// covers: BRK-07
func TestACopyAsksAhead(t *testing.T) {
	for name, size := range map[string]func(i int) int{
		"alike":        func(int) int { return 10_000 },
		"growing":      func(i int) int { return 100 + 8*i },
		"shrinking":    func(i int) int { return 100 + 8*(3000-i) },
		"small, large": func(i int) int { return 100 + i/400%2*15_000 },
		"huge":         func(i int) int { return 100 + 5_000_000*min(1, i%500/499) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				var want, got []string
				p, err := r.nodes["a"].store.Open("00aa", 0)
				require.NoError(t, err)
				for i := 0; i < 3000; {
					var recs []partition.Record
					for range 100 {
						recs = append(recs, partition.Record{Payload: append(fmt.Append(nil, i, " "), make([]byte, size(i))...)})
						want = append(want, fmt.Sprint(i, " of ", size(i)))
						i++
					}
					_, err = p.Commit(t.Context(), recs)
					require.NoError(t, err)
				}
				net := &slow{Caller: r}
				r.nodes["b"].moves.o.Caller = net
				r.begin()
				r.eventually("the move's end", func() bool { return r.owner() == "b" })
				for _, payload := range r.nodes["b"].stored() {
					number, rest, _ := strings.Cut(payload, " ")
					got = append(got, fmt.Sprint(number, " of ", len(rest)))
				}
				require.Equal(t, want, got)
				net.mu.Lock()
				defer net.mu.Unlock()
				if name != "huge" { // of which an answer has one, or all that are small in between
					require.GreaterOrEqual(t, net.most, 2)
				}
				require.LessOrEqual(t, net.most, inFlight+1, "what is missing of a run is asked for beside the others")
			})
		})
	}
}
