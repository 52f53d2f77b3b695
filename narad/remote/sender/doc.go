// Package sender sends the slabs of a remote child's cursors to their targets (seed: The send path; SND, GAT, ANS, LOG). It is the
// commit of a remote child: the fan-out cursor hands it a slab and advances only when it answers Committed.
//
// Four things are kept apart, each readable without the others:
//
//   - what to send next: plan.go (lanes, chunk cutting, narrowing down to a refused record), pure
//   - what an answer means: classify.go, one rule for each row of wire.Answers
//   - who may send now: gate.go with turns.go, slots.go, backoff.go, stall.go, checks.go
//   - who waits for whom: ship.go, lane.go and watch.go; exchange.go is one request from its chunk to what follows from its answer,
//     check.go one check of the target, size.go the batch-size probe, compress.go the encoders, crossing.go the way of each to the wire
//
// hold.go is what becomes of records while their lanes wait. board.go is what a cursor shows and logs. DESIGN.md tells the failure stories.
//
// It promises: a lane's records go in order, one request at a time; a lane's mark moves only over a record that the target
// answered 202 for or that an admin skipped; Committed is returned only when every record of the slab is at or below its lane's
// mark. Nothing is sent before the target was checked. Whatever fails is sent again: a duplicate, never a gap. Nothing of an answer but status, class and message index is logged.
//
// Goroutines: one per cursor from Open to Close, which checks the target and which Close waits for; one per lane while Ship runs, which
// waits for them, and one that watches over the end of Ship's context, which Ship waits for too. A gate's timer fires only while
// somebody waits or reads.
//
// It refused: a goroutine per lane for good (1,008 idle cursors would be 8,064 of them), a queue of requests in front of the
// client (a lane that waits holds nothing that is not its own), and a retry library (each wait here belongs to a row).
package sender
