// Package invariant judges a scenario by its run folder alone: one file for each promise, each a pure function over the ledger. A verdict
// states the promise in words and names what breaks it.
//
// It promises: fail only where the ledger proves a violation; inconclusive where data is missing or a judge panics; pass only where
// the promise was put to the test. It reads no clock, no network and nothing but the folder, so that an old run can be judged again.
//
// It runs no goroutine. It refused to look at the broker's own counters for gaps, order and bytes: those rest on what the tap saw and on
// what replay answered. The one counter that counts is the resent records, since nobody else can know which requests were in doubt.
package invariant
