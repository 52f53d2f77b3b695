// Package workload makes the load of a scenario: records whose every byte follows from the run's seed, produced at a rate over several
// nodes, each remembered as acknowledged, refused or unknown with its hashes.
//
// It promises: every record is unique and carries its ID (ledger.NewID) in its payload; a smaller payload is unique by its bytes, and the
// smallest ones, among them each small word of JSON, come with a key of their own; no record is ever produced twice by the generator, so
// that a copy is always the product's; a record is written to the ledger when its answer is known, also when none came.
//
// What follows an unknown produce: the generator does not try the same record again, whatever happened. It goes on with new records and new
// IDs, also of the same key. Order per key is judged from the parent's offsets on (HAR-06), so it does not matter whether and where
// the unknown one landed, and a duplicate on the wire cannot come from here.
//
// Loops: Run starts a fixed number of workers for each load and waits for all of them; its context ends them. It refused a common random source:
// each record has one of its own, derived by name, so that the schedule of the workers changes nothing.
package workload
