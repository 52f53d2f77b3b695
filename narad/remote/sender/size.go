package sender

import (
	"context"
	"net/http"
	"time"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// This file is the batch-size probe (SND-04, DEC-41): one more message than a target with the small bound takes, each without a
// payload, so that every target refuses the request and stores nothing. What it says is wrong tells its bound.

// size is how many records a request to a remote may have, as far as this node has heard under the gate's credential.
type size struct {
	most   int       // 100 until the target was heard
	heard  bool      // it was
	asking bool      // a probe is on the wire
	again  time.Time // one that was not answered is repeated after this
}

// asksSize tells whether the remote's batch size is still to be asked for.
func (r *remote) asksSize(v view) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks(v)
}

func (r *remote) asks(v view) bool {
	return r.gate == v.gate && !r.size.heard && !r.size.asking && !time.Now().Before(r.size.again)
}

// claimSize makes the caller the one that asks, once per remote, node and credential.
func (r *remote) claimSize(v view) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asks(v) {
		return false
	}
	r.size.asking = true
	return true
}

// sized ends the asking; most 0 is that the target did not say.
func (r *remote) sized(v view, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.gate != v.gate: // another credential asks anew
	case most == 0:
		r.size = size{most: fewMessages, again: time.Now().Add(errorWait)}
	default:
		r.size = size{most: most, heard: true}
	}
}

// takesFew remembers that the target refused a chunk of more than 100 records for their number (DEC-41).
func (r *remote) takesFew(v view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gate == v.gate {
		r.size.most = fewMessages
	}
}

// askSize sends the probe, when no other cursor does, and remembers the answer. The pass is one of an open gate, and the answer
// counts there like a chunk's.
func (c *Cursor) askSize(ctx context.Context, m moment, p pass) {
	if !c.remote.claimSize(m.view) {
		return
	}
	q := sent{records: fewMessages + 1, requestID: c.senders.dice.id()}
	a, err := (&counted{c: c, client: m.view.Client}).Do(ctx, &outbound.Request{
		Method: http.MethodPost, Path: c.path, Body: target.SizeBody, RequestID: q.requestID,
	})
	v := classify(q, a, err)
	v.landed = false // there is nothing in it that could land
	most := 0
	switch v.row {
	case "ANS-02":
		most = maxMessages
	case target.RowTooMany:
		most = fewMessages
	default:
		if v.row == "ANS-01" { // no Narad takes it
			v.rule = rules["ANS-19"]
		}
		if v.state != wire.Running {
			c.senders.observer.Error(c.cfg.Remote, v.class())
		}
	}
	m.view.gate.done(p, &v)
	c.remote.sized(m.view, most)
}
