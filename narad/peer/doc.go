// Package peer carries calls between the nodes of one cluster: an op is a name, its body and its answer are JSON or raw bytes.
//
// Every connection is TLS 1.3 with a throw-away certificate, and both ends prove the cluster secret before a byte of a call
// flows: HMAC-SHA-256 under the secret over keying material that is exported from this one session, with a label for the
// role. A proof is therefore worth nothing in another session, in the other direction, or to somebody who ends TLS in
// between. The certificate is not verified since it says nothing; the proof does. A wrong secret ends the handshake with an
// error that names NARAD_CLUSTER_SECRET.
//
// Behind the proofs both ends say the ID of their cluster where ALPN agrees on it. When both know one and these differ, both refuse with
// ErrCluster: somebody started a node over the data folder of another cluster. An end that knows none, as before it has joined, and one of a
// release that says none are taken.
//
// A *wire.Problem that a handler returns arrives as one; any other error of a handler is logged there and arrives as
// codes.Internal without its text. An op that the node does not know is answered codes.Unimplemented. Every call and every
// handshake has a deadline. A call is never sent twice.
//
// Loops: gRPC's own, one set per connection. Client.Close and Server.Close end and wait for them and for running calls.
//
// Refused: generated code (one unary shape needs none), a fixed token (replayable; broker.md Node RPC), a certificate
// authority for the cluster (a second secret to hand out).
package peer
