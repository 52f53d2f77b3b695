// Package target is what this cluster knows of a target's own words: the requests that read a topic and its children listing
// there, and how any answer of a target is read before anybody knows what was asked (seed: What each answer does, Target
// checks).
//
// It promises that nothing of an answer leaves it but the status, a class, a message index and the fields that a check needs;
// no error of it carries text of the target (LOG-01). It runs no goroutine and keeps no state; the request's bounds are the
// outbound client's.
//
// What only a chunk of records can be answered (202, 400, 409, 412, 413, 415) is read by package sender; what every request can
// be answered is read here, so that a check and a chunk never disagree (RUN-10). Refused: retries inside this package, since
// every request to a target passes the gate, and the gate is the sender's.
package target
