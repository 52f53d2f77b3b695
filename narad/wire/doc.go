// Package wire holds the JSON shapes of the HTTP API and the few names that every part of the project must spell the same
// way: link states, the answer table, kinds of refusals. Server, sender, client and harness share it; it imports nothing of
// the project and decides nothing.
//
// It promises that a shape here is exactly what stands in a request or an answer. Fields may be added to answers;
// requests refuse what they do not know, which is the decoder's business (package api), not the shapes'.
package wire
