// Package explore looks for schedules that break the product: it makes random scenarios from a seed, runs them in virtual time in worker
// processes, and makes the ones that fail as small as they can be (HAR-15, HAR-16).
//
// It promises: a schedule follows from the seed and its number alone, down to the byte; it is a valid scenario; it asks for nothing that the
// design does not owe (everything heals before the load ends, and there is traffic before, during and after each fault). A failure is kept as a
// scenario file that names its seed, its judge and the command that runs it again. What shrinks keeps failing by the same judge; a schedule that
// fails only now and then is tried more than once before a change to it counts as harmless.
//
// Round makes the schedules of a soak (harness/soak) from the same parts, for clusters of several nodes and for real processes.
//
// Loops: Workers.Run has one goroutine for each worker and, while a schedule runs, one that reads the worker's answer; Run has one that hands out
// schedules. All of them are waited for before Run returns, and its context ends them together with the worker processes.
//
// That it finds bugs is seen with one of harness/mutants built in; with drop-first-of-retry, position-ahead and advance-early one of the first four
// schedules of seed 1 fails:
//
//	patch -p1 < harness/mutants/bug-position-ahead.patch && make explore COUNT=4
//
// It refused: faults that never heal, answers that block a lane until an admin skips the record, and running schedules in the harness's own
// process, since a product that panics or hangs would take the explorer with it.
package explore
