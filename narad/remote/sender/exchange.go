package sender

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// keepBytes is the largest body buffer that goes back to the pool; a lone record of 1 MiB as base64 fits.
const keepBytes = 2 << 20

// exchange sends the lane's next chunk and acts on the answer, as the probe behind a check of the target. The lane has a slot and p.
func (l *lane) exchange(s *shipment, m moment, p pass) {
	c := l.c
	if p.probe && p.checked == nil && !l.checkToSend(s, m, p) {
		return
	}
	buf := c.senders.body()
	body, ch := l.queue.cut((*buf)[:0], m.view.most, l.cap, m.live.Skips)
	q := sent{records: ch.records, targetID: m.live.TargetID, requestID: c.senders.dice.id()}
	r := outbound.Request{
		Method: http.MethodPost, Path: c.path, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, RequestID: q.requestID,
	}
	if q.targetID != "" {
		r.Header[wire.HeaderIfTopicID] = []string{q.targetID}
	}
	var packed *[]byte
	if m.view.Limits.Compression == zstdName && !c.plain.Load() && !l.plain {
		packed = c.senders.body()
		var saves bool
		if *packed, saves = c.senders.zstd.compress((*packed)[:0], body); saves {
			r.Body, r.ContentEncoding, q.compressed = *packed, zstdName, true
		}
	}
	number := c.sent.Add(1)
	line := counted{c: c, client: m.view.Client, plain: len(body)}
	a, err := line.Do(s.wire, &r)
	v := classify(q, a, err)
	*buf = body
	c.senders.keep(buf)
	c.senders.keep(packed)
	if v.action == wire.LookUp {
		v = l.lookUp(s, counted{c: c, client: m.view.Client}, v)
	}
	shut, late := m.view.gate.done(p, &v)
	l.way.landed()
	l.count(&v, ch)
	l.act(m, ch, &v, number, standing{shut, late})
}

// checkToSend makes the probe's check and tells whether the chunk follows. A check that the remote refused as a whole or that
// stopped the link was the whole probe (RUN-06); so was one that a pause or a stop came after.
func (l *lane) checkToSend(s *shipment, m moment, p pass) bool {
	v, onwards := l.c.check(s.wire, m, p, nil)
	now := l.c.live()
	if onwards && !now.Paused && now.TargetID == m.live.TargetID && !s.stopped(l.c) {
		return true
	}
	p.gate.done(p, &v)
	l.way.landed()
	if v.row == target.RowCut {
		l.resumes = time.Now().Add(backoffFloor)
	}
	return false
}

// counted is the way to the target with its metrics.
type counted struct {
	c      *Cursor
	client target.Doer
	plain  int // bytes of a body that may be compressed
}

// body returns a buffer for a request body.
func (s *Senders) body() *[]byte {
	buf, _ := s.bodies.Get().(*[]byte) // the pool holds nothing else
	return buf
}

// keep gives a buffer back; nil is none.
func (s *Senders) keep(buf *[]byte) {
	if buf != nil && cap(*buf) <= keepBytes {
		s.bodies.Put(buf)
	}
}

// Do sends one request and counts it.
func (d counted) Do(ctx context.Context, r *outbound.Request) (*outbound.Answer, error) {
	begun := time.Now()
	a, err := d.client.Do(ctx, r)
	code := "error"
	if err == nil && a != nil {
		code = strconv.Itoa(a.Status)
	}
	d.c.senders.observer.Request(d.c.cfg.Remote, code, time.Since(begun), max(d.plain, len(r.Body)), len(r.Body))
	return a, err
}

// lookUp asks the children listing whether Go's bare 404 came from a target without the batch route (ANS-11) or from something in
// front (ANS-12). It goes under the chunk's own slot and pass, and what its own answer says of the remote or the topic is acted
// on as a chunk's (RUN-10). A pause lets nothing start, this included (DEC-38).
func (l *lane) lookUp(s *shipment, line counted, bare verdict) verdict {
	v := verdict{row: "ANS-12", rule: rules["ANS-12"], status: bare.status, landed: true}
	if l.c.live().Paused || s.stopped(l.c) {
		return v
	}
	_, err := target.Listing(s.wire, line, l.c.cfg.TargetTopic)
	var e *target.Error
	switch {
	case err == nil:
		return verdict{row: "ANS-11", rule: rules["ANS-11"], status: bare.status}
	case !errors.As(err, &e):
		return v
	}
	switch e.Row {
	case "ANS-08", "ANS-09", "ANS-10", "ANS-13", "ANS-14", "ANS-20", "ANS-21":
		return verdict{row: e.Row, rule: rules[e.Row], status: e.Status, retryAfter: e.RetryAfter}
	}
	return v
}

// count tells the metrics what became of a chunk.
func (l *lane) count(v *verdict, ch chunk) {
	o := l.c.senders.observer
	if v.edge || v.state != wire.Running {
		o.Error(l.c.cfg.Remote, v.class())
	}
	if v.landed {
		o.Resent(l.c.cfg.Remote, ch.records)
	}
}

// standing is how the gate stands once it was told an answer.
type standing struct {
	closed bool
	late   bool // the answer came late, so that a closed gate may open soon after it
}

// act does what the answer's row says.
func (l *lane) act(m moment, ch chunk, v *verdict, number int64, gate standing) {
	l.resize(ch, v)
	if v.effect != aboutTransient && v.effect != aboutNothing {
		l.backoff.reset()
	}
	now := seen{m.view.Remote, m.live.TargetID}
	switch {
	case v.row == target.RowCut:
		l.c.stall.withdraw(l) // nothing was heard
	case v.action != wire.Stall:
		l.c.stall.heard(l)
	}
	told := trouble{v.state, v.status}
	l.plain, l.since = false, time.Time{}
	switch v.action {
	case wire.SendPlain: // at once, as the lane's next turn
		l.plain = true
		l.c.plain.Store(true)
	case wire.Commit:
		l.mark.Store(ch.last)
		l.queue.accepted(ch)
		l.stuck = time.Time{}
		l.c.board.accept(l.index, number, !gate.closed)
	case wire.Locate, wire.Split:
		l.narrow(now, ch, v, told)
	case wire.Halve:
		if v.row == target.RowTooMany && ch.records > fewMessages {
			l.c.remote.takesFew(m.view)
			return
		}
		l.queue.halve(ch, false)
	case wire.BlockFirst:
		l.block(now, told)
		l.c.checks.owe()
	case wire.Block:
		l.block(now, told)
	case wire.Stall:
		l.c.stalled(now, v.state, v.status)
	case wire.CloseGate, wire.Retry:
		l.retry(v, told, gate)
	default:
		panic("sender: no way to do " + string(v.action)) // rules and this switch are one table
	}
}

// narrow goes after the one record that the target refuses: those before it alone, or halves, then the record itself once as base64
// when it went raw, then the lane blocks on it (ANS-02 to ANS-04, SND-09).
func (l *lane) narrow(now seen, ch chunk, v *verdict, told trouble) {
	switch {
	case ch.records > 1 && v.action == wire.Locate:
		l.queue.name(v.index)
	case l.queue.halve(ch, true):
	case ch.raw:
		l.queue.sendPlain()
	default:
		l.block(now, told)
	}
}

// block holds the lane on its first record, which goes again alone in 30 s, at once when the remote changes, and never once an admin
// skipped it.
func (l *lane) block(now seen, told trouble) {
	l.queue.blocked()
	l.stuck, l.stuckOn, l.under = time.Now().Add(stallWait), l.queue.first().Offset, now
	l.c.board.block(l.index, l.stuckOn, told)
}

// retry sends the same records again after a wait: the gate's when the failure closed it, else the lane's own (GAT-06), which an answer that
// came late starts too (DEC-26).
func (l *lane) retry(v *verdict, told trouble, gate standing) {
	if v.row == target.RowCut { // by us; or the client was closed because the remote changed
		l.resumes = time.Now().Add(backoffFloor)
		return
	}
	l.c.board.fail(l.index, told)
	if !gate.closed || gate.late {
		l.resumes = time.Now().Add(l.backoff.next())
	}
}

// resize moves the lane's byte cap (SND-05, DEC-07).
func (l *lane) resize(ch chunk, v *verdict) {
	was := l.cap
	switch v.action {
	case wire.Commit:
		if l.streak++; l.streak == raiseAfter {
			l.streak = 0
			l.cap = min(maxBodyBytes, 2*l.cap)
		}
	default:
		l.streak = 0
		if v.shrink {
			l.cap = max(minBodyBytes, l.cap/2)
		}
		if v.row == "ANS-06" {
			l.cap = max(minBodyBytes, min(l.cap, ch.bytes/2))
		}
	}
	if l.cap != was {
		l.c.remote.recap(was, l.cap)
	}
}
