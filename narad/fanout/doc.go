// Package fanout copies parent topics to their children: it runs one cursor per (parent partition, child) on the node that
// owns the parent partition (CUR-02), local children and remote children alike. DESIGN.md tells why it is as it is and what
// happens in each kind of failure.
//
// It promises: a cursor passes a record only once its sink has committed it (CUR-09), in order, each at least once; a crash
// repeats at most two slabs (DEC-34), a graceful stop nothing but a request that was cut (DEC-09). The only loss is what
// retention takes first, counted and logged (CUR-10). A position belongs to one attach epoch and never starts another one.
// No record of a delay child goes before its commit time plus the delay, by this node's wall clock (CUR-11, DEC-40).
//
// Loops: Runner.Run reconciles and wakes only when the metadata changes. Each desired cursor has a goroutine of its own, the
// entry, started by the reconciler; while it ships, one goroutine reads the next slab and one syncs the position, and both
// are waited for by the cursor. Run ends and awaits all entries. An idle cursor blocks on its partition's watch: no timer runs
// and no memory is held for it.
//
// Refused: one pooled worker set for all cursors (a link that hangs would take workers from the others), a timer that polls
// the metadata, and shared positions (a child that is slow would hold up the others).
package fanout
