// Package partition keeps the records of one topic partition on its owner: commit, the high watermark, reading, retention.
//
// It promises that a record is visible only after it was appended, synced, read back and verified (BRK-03); that offsets
// have no gaps and commit times never decrease along a partition, whatever the clock does; that what was visible once
// is found by every later Open (BRK-04). A record is one frame of package seglog, which describes the files.
//
// Concurrent commits combine: while one cycle runs, others wait, and the next cycle takes them all with one write, one
// sync and one read-back.
//
// Payloads may be stored compressed (Codec). Whoever commits compresses, beside other commits; each record says for itself how it is
// stored, so that a partition reads what was stored under any setting.
//
// It runs no goroutine. Retain is called by whoever owns the retention loop. It refused to delete single records, and to
// remember the high watermark in a file: the durable end of the log is the high watermark after a restart.
package partition
