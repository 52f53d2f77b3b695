// Package soak plays rounds for hours and stops at the first broken promise (HAR-12). A round is a random schedule (explore.Round) that follows
// from the seed and its number alone, played as any scenario is, with every judge at its end.
//
// It promises: one seed gives the same row of rounds, and a round alone can be played again from its file. After every round, and before it ends,
// the report in the soak's folder is whole: soak.json, index.html and summary.md are each replaced in one step and safe on the disk, so that a
// soak that is killed, or whose machine dies, leaves one of all rounds before. It is never green before the soak has ended: until then its verdict
// is inconclusive. The first violation ends the soak and keeps the round whole: scenario file, run folder with its page, versions, commands. An end
// by the context lets the round that runs take everything down and counts it as cut, not as inconclusive.
//
// Clusters do not live on from round to round. A judge knows a cluster's whole life then: nothing has been taken by retention, every node log and every
// request is at hand, and a round that fails needs no hours before it to fail again. Memory and disk stay bounded, for the ledger of a round goes
// when it has passed. What grows in one cluster over a day is not seen here; scenarios/cluster/day.yaml looks for that in virtual time, and a longer
// round for a quarter of an hour.
//
// A round that proved nothing is played once more at once, the same schedule, and why is kept; one that proved nothing twice is counted, and the soak
// goes on. The last few folders of such tries stay. More than one such round in ten at the end, or several in a row at any time, and the soak proved nothing.
//
// Loops: none of its own. What a round starts, the player (run.One) waits for.
//
// It refused: shrinking, since a round takes minutes on real clusters (explore shrinks in virtual time); going on after a violation, since whoever
// reads the report in the morning wants the first; and rounds side by side, which would take the processor from each other's faults.
package soak
