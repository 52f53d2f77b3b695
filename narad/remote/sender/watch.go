package sender

import (
	"context"
	"time"

	"narad.example/narad/remote/target"
)

// watch checks the target whenever that is due, with or without records to send, and has the batch size asked for. One goroutine of
// each cursor runs it from Open to Close; at a closed gate lanes and the reader make their own checks, each before its chunk.
func (c *Cursor) watch() {
	defer close(c.life.watched)
	x := crossing{c: c, errand: toCheck}
	defer x.standDown()
	var again time.Time // a check that was cut is not made again before
	for {
		m := c.moment()
		if closed(c.closed) {
			return
		}
		if m.live.Paused {
			x.standDown()
			c.rest(m, nil, time.Time{}, nil, nil)
			continue
		}
		if m.view.State != "" {
			x.standDown()
			c.board.idle(trouble{state: m.view.State})
			c.rest(m, nil, time.Time{}, nil, nil)
			continue
		}
		n := m.view.gate.notice()
		c.board.idle(n.trouble())
		due := later(c.checkDue(m, n), again)
		checks, asks := !due.After(time.Now()), !n.closed && !c.stall.stands() && c.remote.asksSize(m.view)
		if !checks && !asks {
			x.standDown()
			c.rest(m, nil, due, nil, n.news)
			continue
		}
		p, on, ok := x.step(m.view)
		switch {
		case ok && (checks || p.probe):
			v, _ := c.check(c.life.ctx, m, p, func(v *verdict) {
				p.gate.done(p, v)
				x.landed()
			})
			if v.row == target.RowCut {
				again = time.Now().Add(backoffFloor)
			}
		case ok:
			c.askSize(c.life.ctx, m, p)
			x.landed()
		case on != nil:
			c.rest(m, nil, time.Time{}, on, n.news)
		}
	}
}

// checkDue is when the next check is due; the zero time is now. While a stall stands, its retry alone asks for one.
func (c *Cursor) checkDue(m moment, n notice) time.Time {
	if at, stands := c.stall.due(seen{m.view.Remote, m.live.TargetID}); stands {
		return at
	}
	return c.checks.due(m.view.gate, n.era, interval(m.view.Limits))
}

// rest waits until a time (zero: none), a grant, or anything that may have changed.
func (c *Cursor) rest(m moment, stop <-chan struct{}, until time.Time, grant, news <-chan struct{}) {
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-stop:
	case <-m.halt:
	case <-c.closed:
	case <-m.link:
	case <-m.remotes:
	case <-m.stall:
	case <-m.checks:
	case <-grant:
	case <-news:
	case <-due:
	}
}

// both is a context that ends with either of two.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}
