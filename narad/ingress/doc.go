// Package ingress takes records in and hands them to the owners of their partitions (broker.md, Produce).
//
// It promises: Produce returns only after its records are fsynced in this node's write-ahead log, all of them or none
// (BRK-01). Every such record is committed to the topic incarnation that it was meant for, in the order of the log per
// destination, at least once, over any number of crashes (BRK-02, BRK-04); only a record whose topic incarnation is
// confirmed gone is dropped, counted and logged (BRK-09). Backlog is exact: a record is in it before its produce is
// answered and until after its commit.
//
// Loops, all started by Run and waited for by it: the reader, which reads each record once as it becomes durable; one worker
// per destination that has records, of which at most MaxCommits commit at a time; the keeper, which writes the checkpoint.
// They end with Run's context.
//
// The checkpoint is the first sequence that is not done. A crash repeats what was committed above it: at most what fits in
// MaxMemory, in practice the commits in flight, because the checkpoint is in the page cache right after each.
//
// A destination that fails keeps its records in memory of their own, so that it pins no memory that others share; when
// MaxMemory is full of waiting records reading stops until some are committed. After RerouteAfter of failures, counted from the
// beginning of the first commit that failed, or at once for a dead owner, keyless records that nobody pinned go to a live sibling partition. Keyed and pinned ones wait: a key's
// records never overtake each other, and a pin is a promise.
//
// Refused: a queue file per destination (an fsync per destination and produce), and scanning the log to answer Backlog.
package ingress
