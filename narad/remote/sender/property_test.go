package sender

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// chaos is a target whose answers come from a seed, and the judge of all that it sees.
type chaos struct {
	recs  map[int64]*Record
	lanes int
	slots int

	mu      sync.Mutex // guards the fields below
	r       *rand.Rand
	calm    bool
	onWire  map[int64]bool // by partition and lane
	copies  map[int64]int
	newest  map[string]int64 // by partition and key, the last first acceptance
	done    map[int64]int64  // by partition and lane, the last record that was answered 202
	skipped map[int64]bool
	before  map[int64]int64 // the lane's record before this one, -1 for none
	wrong   string
	rereads int
}

func (ch *chaos) laneOf(o int64) int64 { return o/1e6*8 + int64(laneOf(ch.recs[o], ch.lanes)) }

func (ch *chaos) fail(format string, args ...any) {
	if ch.wrong == "" {
		ch.wrong = fmt.Sprintf(format, args...)
	}
}

func (ch *chaos) Do(ctx context.Context, r *outbound.Request) (*outbound.Answer, error) {
	body := r.Body
	if r.ContentEncoding != "" {
		body = unzstd(body)
	}
	offsets, _ := decodeChunk(body)
	if len(offsets) == 0 || bytes.Equal(r.Body, target.SizeBody) {
		return ch.aside(ctx, r)
	}
	lane := ch.laneOf(offsets[0])
	ch.mu.Lock()
	if ch.onWire[lane] {
		ch.fail("two requests of lane %d on the wire", lane)
	}
	ch.onWire[lane] = true
	if len(ch.onWire) > ch.slots {
		ch.fail("%d requests on the wire", len(ch.onWire))
	}
	last := ch.done[lane]
	for _, o := range offsets {
		before := ch.before[o]
		for before >= 0 && ch.skipped[before] && before != last {
			before = ch.before[before]
		}
		if ch.laneOf(o) != lane || before > last {
			ch.fail("record %d of lane %d was sent with %d before it, and %d done", o, ch.laneOf(o), before, last)
		}
		last = max(last, o)
	}
	delay := time.Duration(ch.r.IntN(2000)) * time.Millisecond
	if ch.calm {
		delay = time.Millisecond
	}
	ch.mu.Unlock()
	cut := false
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		cut = true
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	delete(ch.onWire, lane)
	if cut {
		ch.store(offsets, lane, false)
		return nil, failure(outbound.Canceled)
	}
	return ch.answer(r, offsets, lane)
}

// aside answers a check, a lookup or a batch-size probe: a good one, a stop that a later check takes back, or anything at all.
func (ch *chaos) aside(ctx context.Context, r *outbound.Request) (*outbound.Answer, error) {
	ch.mu.Lock()
	kind, delay := ch.r.IntN(6), time.Duration(ch.r.IntN(1500))*time.Millisecond
	c := answersToAChunk[ch.r.IntN(len(answersToAChunk))]
	if ch.calm {
		kind, delay = 0, time.Millisecond
	}
	ch.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, failure(outbound.Canceled)
	}
	switch {
	case kind < 3 && r.Method == http.MethodPost:
		return shaped(400, "message 0: payload required"), nil
	case kind < 3:
		return lists(`[{"name":"local"}]`), nil
	case kind == 3 && r.Method == http.MethodGet:
		return lists(`[{"name":"copy","remote":"us","state":"running"}]`), nil
	case c.err == nil && c.answer != nil && c.answer.Status == http.StatusAccepted:
		return page(404), nil
	}
	return c.answer, c.err
}

// answer draws one: those that may have landed did.
func (ch *chaos) answer(r *outbound.Request, offsets []int64, lane int64) (*outbound.Answer, error) {
	if ch.calm || ch.r.IntN(3) == 0 {
		ch.store(offsets, lane, true)
		return accepted(len(offsets)), nil
	}
	c := answersToAChunk[ch.r.IntN(len(answersToAChunk))]
	a := c.answer
	if c.row == "ANS-02" {
		a = shaped(400, fmt.Sprintf("message %d: no", ch.r.IntN(len(offsets))))
	}
	v := classify(sent{records: len(offsets), compressed: r.ContentEncoding != "", targetID: "00000000000000aa", requestID: "me"}, a, c.err)
	if v.row == "ANS-01" || a != nil && a.Status == 202 {
		ch.store(offsets, lane, true)
		return accepted(len(offsets)), nil
	}
	if v.landed && ch.r.IntN(2) == 0 {
		ch.store(offsets, lane, false)
	}
	return a, c.err
}

func (ch *chaos) store(offsets []int64, lane int64, answered bool) {
	for _, o := range offsets {
		ch.copies[o]++
		if r := ch.recs[o]; ch.copies[o] == 1 && len(r.Key) > 0 {
			key := fmt.Sprint(o/1e6, " ", string(r.Key))
			if newest, ok := ch.newest[key]; ok && newest > o {
				ch.fail("record %d of its key came after %d", o, newest)
			}
			ch.newest[key] = o
		}
	}
	if answered {
		ch.done[lane] = max(ch.done[lane], offsets[len(offsets)-1])
	}
}

// covers: SND-01, SND-02, SND-12, CUR-07, CUR-08, CUR-09, ANS-24
func TestNothingIsLostOrOvertakenWhateverTheAnswers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lanes := rapid.IntRange(1, 8).Draw(rt, "lanes")
		cursors := rapid.IntRange(1, 4).Draw(rt, "cursors")
		slabs := rapid.IntRange(1, 3).Draw(rt, "slabs")
		slots := rapid.IntRange(1, 6).Draw(rt, "slots")
		events := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 20).Draw(rt, "events")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = drive(t, seed, lanes, cursors, slabs, slots, events) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

func drive(t *testing.T, seed uint64, lanes, cursors, slabs, slots int, events []int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	ch := &chaos{
		recs: map[int64]*Record{}, lanes: lanes, slots: slots, r: r, onWire: map[int64]bool{}, copies: map[int64]int{},
		newest: map[string]int64{}, done: map[int64]int64{}, skipped: map[int64]bool{}, before: map[int64]int64{},
	}
	slabsOf := make([][][]Record, cursors)
	for p := range cursors {
		at, last := int64(p)*1e6, map[int64]int64{}
		for range slabs {
			slab := records(at, 1+r.IntN(200))
			for i := range slab {
				o := slab[i].Offset
				ch.recs[o] = &slab[i]
				if r.IntN(4) == 0 {
					slab[i].Payload = fmt.Appendf(nil, "raw %d", o)
				}
				lane := ch.laneOf(o)
				ch.before[o] = -1
				if before, ok := last[lane]; ok {
					ch.before[o] = before
				} else {
					ch.done[lane] = -1
				}
				last[lane] = o
				if r.IntN(50) == 0 {
					ch.skipped[o] = true
				}
			}
			at += int64(len(slab))
			slabsOf[p] = append(slabsOf[p], slab)
		}
	}
	n := newNode(t, &fakeTarget{})
	n.senders.held.limit = []int64{0, 3000, 20_000, 1 << 30}[seed%4]
	n.change(func(r *Remote) {
		if r.Client, r.Limits.MaxInFlight = ch, slots; seed%8 < 4 {
			r.Limits.Compression = "zstd"
		}
	})
	l := newLink()
	l.set(func(v *LinkLive) { v.Skips = func(o int64) bool { return ch.skipped[o] } })
	moves := make([]chan struct{}, cursors)
	var wg sync.WaitGroup
	for p := range cursors {
		moves[p] = make(chan struct{}, len(events))
		wg.Go(func() { ch.cursor(n, l, p, slabsOf[p], moves[p]) })
	}
	for _, e := range events {
		time.Sleep(time.Duration(e) * 1700 * time.Millisecond)
		switch e % 4 {
		case 0:
			l.set(func(v *LinkLive) { v.Paused = true })
			time.Sleep(time.Duration(e) * time.Second)
			l.set(func(v *LinkLive) { v.Paused = false })
		case 1:
			n.change(func(r *Remote) { r.CredentialVersion++ })
		default:
			moves[e%cursors] <- struct{}{}
		}
	}
	ch.mu.Lock()
	ch.calm = true
	ch.mu.Unlock()
	time.Sleep(time.Hour)
	synctest.Wait()
	wg.Wait()
	return ch.judge(n)
}

// cursor is a fan-out cursor in short: it reads its slabs one after the other, and moves to a new owner when told to.
func (ch *chaos) cursor(n *node, l *link, p int, slabs [][]Record, move <-chan struct{}) {
	c := n.begin(l, p, ch.lanes)
	for i := 0; i < len(slabs); {
		ctx, cancel := context.WithCancel(context.Background())
		out := make(chan Outcome, 1)
		go func() {
			if c.Wait(ctx) != nil {
				out <- Stopped
				return
			}
			lent, release := lend(slabs[i])
			out <- c.Ship(ctx, lent, release)
		}()
		select {
		case o := <-out:
			switch o {
			case Committed:
				i++
			case ReadAgain:
				ch.mu.Lock()
				ch.rereads++
				ch.mu.Unlock()
			}
		case <-move:
			cancel()
			within, stop := context.WithTimeout(context.Background(), 500*time.Millisecond)
			c.Close(within)
			stop()
			if <-out == Committed {
				i++
			}
			c = n.begin(l, p, ch.lanes, c.Marks()...)
		}
		cancel()
	}
	for calm := false; !calm; { // until then an idle cursor may show the gate, or what its checks find
		ch.mu.Lock()
		calm = ch.calm
		ch.mu.Unlock()
		time.Sleep(2 * time.Minute)
	}
	if s := c.Status(); s.Unverified || s.State != wire.Running && s.State != wire.Paused || len(s.Blocked) > 0 {
		ch.mu.Lock()
		ch.fail("in the end the cursor shows %v", s)
		ch.mu.Unlock()
	}
	c.Close(context.Background())
}

func (ch *chaos) judge(n *node) string {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	twice := 0
	for o := range ch.recs {
		switch k := ch.copies[o]; {
		case k == 0 && !ch.skipped[o]:
			ch.fail("record %d is missing", o)
		case k > 0 && ch.skipped[o]:
			ch.fail("record %d was skipped and sent", o)
		case k > 1:
			twice += k - 1
		}
	}
	if n.seen.holds() != 0 || n.senders.held.total() != 0 {
		ch.fail("%d bytes are still held", n.senders.held.total())
	}
	if resent, _, _ := n.seen.get(); twice > resent {
		ch.fail("%d copies too many, %d counted as resent", twice, resent)
	}
	return ch.wrong
}
