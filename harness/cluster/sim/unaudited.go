package sim

import (
	"context"
	"sync"
)

// commit is a remote write that is committed and has no audit line yet.
type commit struct {
	request string
	index   uint64
}

// lastWord holds a node's next remote write between its commit and its audit line, once it is armed, until it is let go.
type lastWord struct {
	mu      sync.Mutex // guards what follows
	reached chan commit
	gone    chan struct{}
}

// arm has the next one stop; only one can be waited for at a time.
func (l *lastWord) arm() (reached <-chan commit, armed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		return nil, false
	}
	l.reached, l.gone = make(chan commit, 1), make(chan struct{})
	return l.reached, true
}

// at is the node's hook (node.Options.Unaudited).
func (l *lastWord) at(request string, index uint64) {
	l.mu.Lock()
	reached, gone := l.reached, l.gone
	l.reached = nil
	l.mu.Unlock()
	if reached == nil {
		return
	}
	reached <- commit{request, index}
	<-gone
}

// letGo lets the one that stands here go on, and no other stop.
func (l *lastWord) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		close(l.gone)
	}
	l.reached, l.gone = nil, nil
}

// KillUnaudited kills the node between the commit of a remote write and its audit line (cluster.Unaudited). What it would log from then on is
// muted before it goes on.
func (n *simNode) KillUnaudited(ctx context.Context, dying func(ctx context.Context)) (string, uint64, error) {
	reached, armed := n.lastWord.arm()
	if !armed {
		return "", 0, n.errState("is to be killed already")
	}
	defer n.lastWord.letGo()
	select {
	case c := <-reached:
		if dying != nil {
			dying(ctx)
		}
		return c.request, c.index, n.Kill(ctx)
	case <-ctx.Done():
		return "", 0, n.errState("has led no remote write")
	}
}
