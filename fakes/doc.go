// Package fakes holds what stands at the target's end of a chaos run: the tap, a TLS edge that writes down what passes it,
// and the scripted target, an HTTPS server that answers by script and otherwise behaves like a small Narad. Both are the
// harness's own eyes (requirements HAR-03, HAR-05 to HAR-09): they decode batches with a decoder of their own and share no
// code with the broker.
//
// It promises: what passes the tap passes unchanged; a request is written down with the place of its answer among all
// answers (ledger.WireRequest.Seq); a fake reads the whole request before it answers, unless the script cuts the upload;
// script steps are used once unless they say otherwise, and a step that never answered can be told from Steps.
//
// Loops: Tap and Target each run one HTTP server for the edge and one for the control port (Serve's goroutines), ended by
// Close, which waits for every handler. A handler of the tap runs two more goroutines, the decoder of its batch and the
// watch over a client that went away, and waits for both. Listener and dialer are injected (Net), time is package time, so that
// the same code runs in process, in a container and in a bubble of testing/synctest.
//
// An edge can show other faces than its own (FaceNames): certificates that are not good, an alert, silence. It counts connections
// and the requests that came over them by face, which is the evidence that no handshake passed.
//
// It refused: percentages ("fail 3% of all requests"), a second build of the fake for containers, a control port that takes
// any command but the edge's face, and forwarding over HTTP/2. NOT_IMITATED.md lists what the fake does not do.
package fakes
