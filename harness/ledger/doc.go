// Package ledger is what a chaos run leaves behind: the record types of the run folder and how they are written and read.
// It is the leaf where workload, backends, fakes, faults, judges and reports meet; it imports nothing of the project.
//
// A run folder holds run.json (Run) and one folder for each scenario:
//
//	scenario.yaml      as read, defaults filled in
//	facts.json         Facts: what the judges must know that is no stream (links with epochs, phases, expectations)
//	operations.jsonl   Operation: what was produced and asked
//	faults.jsonl       Fault: each fault with its evidence
//	wire.jsonl         WireRequest: what tap or fake saw, in the order of the answers
//	parent.jsonl       Stored: the parents' logs, read back through the API
//	target.jsonl       Stored: the target's logs, read back the same way
//	links.jsonl        Sample: the children listing and the metrics over time
//	audit.jsonl        AuditLine: the audit lines of every node
//	nodes/<name>.log   the nodes' own logs
//	verdicts.json      []Verdict
//
// It promises that what an aborted run has written can be read: a line cut at the end of a file is left out, a broken line
// anywhere else is an error that names its place. Times are milliseconds since the start of the scenario. A field may be
// added; none changes its meaning, so that last month's run can be judged by today's judges.
//
// It runs no goroutine. It refused to hold payloads: a record is known by its ID, its key and the SHA-256 of its payload.
package ledger
