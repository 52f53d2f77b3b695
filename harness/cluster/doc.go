// Package cluster starts what a chaos run plays with: a source cluster, a target cluster (or a scripted fake), the tap in front
// of it, and between them the link, a toxiproxy. The same scenario runs on every Backend; a Rig and its parts know nothing
// of processes or containers (requirements HAR-01, HAR-02).
//
//	source-1..n  ->  link (toxiproxy)  ->  edge (tap)  ->  target-1..n
//	source-1..n  ->  link (toxiproxy)  ->  target-1 (fake)
//	source-i     ->  mesh              ->  source-j, and the same on the target (DESIGN.md)
//	source-i     ->  mesh  ->  link    where the source has several nodes
//
// It promises: a Rig is ready when Start returns, or everything it began is gone again; ports and names of a node stay the same
// through kill and start, as far as the product sees them; every secret is random and new for each rig; a node that ends
// without having been asked to is reported by Trouble and never passed over; Close leaves nothing, and Sweep removes what a
// killed harness left: processes and folders by a journal in the temporary folder, containers and networks by their labels.
//
// Loops: process backend: one goroutine per child waits for its end, one starts children on a thread of its own (Pdeathsig
// is tied to the thread), toxiproxy, tap, fake and mesh serve in process; container backend: one goroutine follows the engine's
// events. Close ends and waits for all of them. Signals are the command's business: it ends the context and closes the rig.
//
// It refused: the testcontainers reaper (an image that would have to be pulled, and one that removes what still runs), fixed
// published ports, retries around the product's own calls, and jitter or partial toxicity, which toxiproxy cannot replay.
package cluster
