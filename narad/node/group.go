package node

import (
	"context"
	"log/slog"
	"sync"
)

// group runs the loops of a node: all share one context, and stop returns when every one has ended. The first error of a
// loop is kept and logged, since a loop that ends by itself is a failure that only a restart mends.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
	log    *slog.Logger
	wg     sync.WaitGroup

	mu  sync.Mutex // guards err
	err error
}

func newGroup(log *slog.Logger) *group {
	ctx, cancel := context.WithCancel(context.Background())
	return &group{ctx: ctx, cancel: cancel, log: log}
}

// run starts a loop that ends with the group's context.
func (g *group) run(name string, loop func(ctx context.Context) error) {
	g.wg.Go(func() {
		err := loop(g.ctx)
		if err == nil || g.ctx.Err() != nil {
			return
		}
		g.log.Error("a part of the node ended by itself; the node is not ready until it is started again",
			slog.String("part", name), slog.Any("error", err))
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.err == nil {
			g.err = err
		}
	})
}

// stop ends every loop and waits.
func (g *group) stop() {
	g.cancel()
	g.wg.Wait()
}

// failure is the first error of a loop that ended by itself.
func (g *group) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}
