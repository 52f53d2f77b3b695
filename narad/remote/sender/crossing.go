package sender

import "time"

// crossing is the way of one waiter to the wire: the gate, then a slot (DEC-28), then the pass. A lane, a cursor's reader and its
// checks each have one, and the goroutine that owns it is the only one to touch it.
type crossing struct {
	c      *Cursor
	errand errand
	ticket *ticket
	at     *gate // of the ticket
	slot   *slotTicket
	asked  time.Time // for the slot
}

// step goes one step further. With ok it has a slot and a pass. Else the owner waits for on, or for at's news, and looks at
// everything again; on is nil when something changed under it, whereupon it looks at once.
func (x *crossing) step(v view) (p pass, on <-chan struct{}, ok bool) {
	if !x.granted(v) {
		return pass{}, x.ticket.grant, false
	}
	if x.slot == nil {
		x.asked, x.slot = time.Now(), x.c.remote.slots.ask()
	}
	if !closed(x.slot.grant) {
		return pass{}, x.slot.grant, false
	}
	p, ok = x.at.take(x.ticket)
	if !ok { // the gate closed meanwhile: nobody holds a slot while waiting for it
		x.standDown()
		return pass{}, nil, false
	}
	x.c.senders.observer.SlotWait(x.c.cfg.Remote, time.Since(x.asked))
	x.ticket = nil
	return p, nil, true
}

// granted joins the gate and tells whether it lets the waiter through.
func (x *crossing) granted(v view) bool {
	if x.ticket == nil || x.at != v.gate {
		x.standDown()
		x.at, x.ticket = v.gate, v.gate.join(x.c, x.errand)
	}
	return closed(x.ticket.grant)
}

// landed gives the slot back after the request, once the gate knows what became of it: whoever has waited for the slot asks the gate then, and
// must not find it open for an answer that closes it (GAT-01).
func (x *crossing) landed() {
	x.c.remote.slots.release()
	x.slot = nil
}

// standDown gives back whatever the waiter has on its way; a turn goes to the next cursor at once (DEC-25).
func (x *crossing) standDown() {
	if x.slot != nil {
		x.c.remote.slots.giveUp(x.slot)
		x.slot = nil
	}
	if x.ticket != nil {
		x.at.leave(x.ticket)
		x.ticket = nil
	}
}
