package sender

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"narad.example/narad/wire"
)

// warnEvery bounds the warnings of one cursor (LOG-04).
const warnEvery = time.Minute

// Status is what a cursor shows.
type Status struct {
	State       wire.LinkState   // the worst of its lanes in LST-03's order; paused while paused (DEC-37)
	Blocked     []wire.BlockedAt // every blocked record, the lowest offset first: an admin may skip any of them (DEC-37)
	LastSuccess time.Time        // of the last accepted request; zero before the first
	LastCheck   time.Time        // of the last good target check; zero before the first
	Unverified  bool             // no good check for 10 minutes; flagged on a link that runs (LST-08)
}

// trouble is one reason for not running.
type trouble struct {
	state  wire.LinkState // empty is none
	status int            // of the answer behind it, 0 without one
}

// sign is one place on the signboard where a trouble stands.
type sign struct {
	trouble
	told bool // its line is written, or left out for LOG-04
	old  bool // a check has found something worse since
}

// set puts up a trouble. One of the same state is the same stall, met again (LOG-05).
func (s *sign) set(t trouble) {
	if s.state != t.state {
		*s = sign{}
	}
	s.trouble = t
}

// renew is an answer newer than the check that found something worse: the stall it tells of is another one.
func (s *sign) renew() {
	if s.old {
		s.told, s.old = false, false
	}
}

// signboard is what one cursor shows and logs. It alone decides when a line is due: a stall is logged when it is entered,
// whatever it came from, and once more when it ends (LOG-02 to LOG-06).
type signboard struct {
	logger   *slog.Logger // carries parent, partition, child, remote
	observer Observer
	cfg      *LinkConfig
	now      func() time.Time // the wall clock

	mu       sync.Mutex // guards the fields below
	paused   bool
	waiting  sign  // of a cursor that waits before it reads
	away     sign  // of the remote or its gate, as the cursor's checks meet it
	check    sign  // what a check found; ends with the next good one
	stall    sign  // of the cursor as a whole, by a chunk; ends with a 202 to a request sent later (DEC-37)
	stalled  int64 // the number of the last request that was sent when the stall began
	lanes    []laneSign
	shown    wire.LinkState
	logged   bool      // the present stall stands in the log
	warned   time.Time // the last warning
	crowded  time.Time // the last line about the held budget
	success  time.Time
	finished bool
}

// laneSign is one lane on the signboard.
type laneSign struct {
	failing sign  // until the lane's next 202
	block   sign  // until the blocked record is accepted or skipped
	offset  int64 // of the blocked record, -1 when none
}

func newSignboard(l *slog.Logger, o Observer, cfg *LinkConfig, now func() time.Time) *signboard {
	b := &signboard{
		logger:   l.With("parent", cfg.Parent, "partition", cfg.Partition, "child", cfg.Child, "remote", cfg.Remote),
		observer: o, cfg: cfg, now: now, lanes: make([]laneSign, cfg.Lanes),
	}
	for i := range b.lanes {
		b.lanes[i].offset = -1
	}
	b.update(func() {})
	return b
}

// update changes the board and logs what follows from the change.
func (b *signboard) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return
	}
	change()
	worst := b.worst()
	switch {
	case worst.state == wire.Running:
		if b.logged {
			b.logged = false
			b.logger.Info("remote child running again")
		}
	case b.tell(worst.state):
		b.logStall(worst)
	}
	shown := worst.state
	if b.paused {
		shown = wire.Paused
	}
	if shown != b.shown {
		b.shown = shown
		b.observer.State(b.cfg.Parent, b.cfg.Child, b.cfg.Partition, shown)
	}
}

// tell tells whether a state's line is due: none was for any sign that shows it. A state that shows again because a worse one ended
// has its line already.
func (b *signboard) tell(state wire.LinkState) bool {
	told := false
	for s := range b.signs {
		told = told || s.state == state && s.told
	}
	for s := range b.signs {
		s.told = s.told || s.state == state
	}
	return !told
}

// signs yields every sign, in the order in which equals are shown.
func (b *signboard) signs(yield func(*sign) bool) {
	for _, s := range []*sign{&b.waiting, &b.away, &b.check, &b.stall} {
		if !yield(s) {
			return
		}
	}
	for i := range b.lanes {
		if !yield(&b.lanes[i].failing) || !yield(&b.lanes[i].block) {
			return
		}
	}
}

func (b *signboard) logStall(t trouble) {
	level := slog.LevelError
	if !t.state.NeedsFix() {
		level = slog.LevelWarn
		now := time.Now()
		if !b.warned.IsZero() && now.Sub(b.warned) < warnEvery {
			return
		}
		b.warned = now
	}
	b.logged = true
	b.logger.LogAttrs(context.Background(), level, "remote child stalled", t.attrs()...)
}

func (t trouble) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("state", string(t.state))}
	if t.status > 0 {
		attrs = append(attrs, slog.Int("status", t.status))
	}
	return attrs
}

func (b *signboard) worst() trouble {
	w := trouble{state: wire.Running}
	for s := range b.signs {
		if s.state != "" && s.state.Rank() < w.state.Rank() {
			w = s.trouble
		}
	}
	return w
}

// pause shows or hides the pause.
func (b *signboard) pause(paused bool) {
	b.update(func() { b.paused = paused })
}

// wait shows why the cursor does not read; the empty trouble is that it does.
func (b *signboard) wait(t trouble) {
	b.update(func() { b.waiting.set(t) })
}

// noRoom logs that the held budget could not take the cursor's records, at most once a minute (DEC-39).
func (b *signboard) noRoom() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.crowded.IsZero() || now.Sub(b.crowded) >= warnEvery {
		b.crowded = now
		b.logger.Error("remote child reads its records again after each wait, remotes.max_held_bytes has no room for them")
	}
}

// fail shows a lane's failure.
func (b *signboard) fail(lane int, t trouble) {
	b.update(func() { b.lanes[lane].failing.set(t) })
}

// idle shows what keeps the cursor's checks from going out; the empty trouble is nothing.
func (b *signboard) idle(t trouble) {
	b.update(func() { b.away.set(t) })
}

// distrust shows what a check found. When that is worse than what a chunk met before, the next answer like the chunk's is another stall.
func (b *signboard) distrust(t trouble) {
	b.update(func() {
		switch {
		case b.stall.state == t.state:
			b.stall.renew()
		case b.stall.state != "" && t.state.Rank() < b.stall.state.Rank():
			b.stall.old = true
		}
		b.check.set(t)
	})
}

// verify shows a good check, the request of that number. With nothing left to send it ends a chunk's stall too.
func (b *signboard) verify(number int64, nothingLeft bool) {
	b.update(func() {
		b.check, b.away = sign{}, sign{} // the remote answered, and a probe's check opens the gate next
		if nothingLeft && number > b.stalled {
			b.stall, b.waiting = sign{}, sign{}
		}
	})
}

// hold shows a stall of the cursor, after sent requests.
func (b *signboard) hold(t trouble, sent int64) {
	b.update(func() {
		if b.check.state == "" {
			b.stall.renew()
		}
		b.stall.set(t)
		b.stalled = sent
	})
}

// block shows that a lane is stuck on a record, and logs it once.
func (b *signboard) block(lane int, offset int64, t trouble) {
	b.update(func() {
		l := &b.lanes[lane]
		if l.offset != offset {
			attrs := append(t.attrs(), slog.Int64("offset", offset))
			b.logger.LogAttrs(context.Background(), slog.LevelError, "remote child blocked on a record the target refuses", attrs...)
		}
		l.block.set(t)
		l.offset = offset
	})
}

// accept shows a 202 to the lane's request of that number, through a gate that is open now or not.
func (b *signboard) accept(lane int, number int64, open bool) {
	b.update(func() {
		if open {
			b.away = sign{}
		}
		b.success = b.now()
		b.lanes[lane] = laneSign{offset: -1}
		b.waiting = sign{}
		if number > b.stalled {
			b.stall = sign{}
		}
	})
}

// clear shows a lane whose blocked record was skipped, or that has nothing left to send.
func (b *signboard) clear(lane int) {
	b.update(func() { b.lanes[lane] = laneSign{offset: -1} })
}

// unblock shows that the blocked record was skipped.
func (b *signboard) unblock(lane int) {
	b.update(func() { b.lanes[lane].block, b.lanes[lane].offset = sign{}, -1 })
}

// finish takes the cursor's series away; true the first time.
func (b *signboard) finish() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return false
	}
	b.finished = true
	b.observer.State(b.cfg.Parent, b.cfg.Child, b.cfg.Partition, "")
	return true
}

// status reads the board. A blocked record that is skipped already is not shown (LST-06).
func (b *signboard) status(skips func(int64) bool) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{State: b.shown, LastSuccess: b.success}
	for i := range b.lanes {
		l := &b.lanes[i]
		if l.offset < 0 || skips != nil && skips(l.offset) {
			continue
		}
		s.Blocked = append(s.Blocked, wire.BlockedAt{Partition: b.cfg.Partition, Offset: l.offset, State: l.block.state})
	}
	slices.SortFunc(s.Blocked, func(a, b wire.BlockedAt) int { return cmp.Compare(a.Offset, b.Offset) })
	return s
}
