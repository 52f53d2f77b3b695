// Package run takes one scenario from start to verdict on a rig: topics, remote and links, load, faults and steps by the clock, healing,
// drained, both logs read back, audit lines gathered, judges asked, the run folder written. It is the only package of the harness that sees
// all the others.
//
// It promises: what was seen is saved, also when the run is aborted, panics or meets its deadline; whatever goes wrong in the harness makes the
// verdict inconclusive and never a violation; every fault is taken back and that is verified before anything is owed; everything it started
// is gone when Scenario returns. It uses plain time and contexts alone, so that the same code runs in a bubble of virtual time.
//
// A run has two phases. Under faults only safety is owed; after the healing, liveness by a deadline.
//
// Loops of one scenario, all ended and waited for by Scenario: the sampler (listing and metrics), the workload's workers, the
// timeline, the steps, one goroutine for each fault, and for the time of the read-back its readers.
//
// It refused: retries of a produce (workload says why), retries of a scenario's step, and judging anything while it runs.
package run
