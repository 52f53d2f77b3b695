// Package node is one node: it builds every room of the house, starts them in order and stops them in the reverse order. It is
// the only package that knows all, and it decides nothing: where two rooms meet through an interface, the adapter stands here.
//
// Start returns when the node answers requests. The order is the path of a record backwards, so that whatever a room calls is
// there before it: data folder and lock, metadata, partitions, consumer state, credentials and sender, cursors, ingress, API.
// Stop refuses new produce, drains the ingress, then ends the rooms from the outside in; Kill ends them at once and flushes
// nothing, which is what tests and the simulation call a SIGKILL.
//
// Whatever another node owns is asked of it over the node RPC; DESIGN.md has the ops, the rules and the failure stories.
//
// Goroutines: every loop is started by Start through one group and ended by its context; Stop and Kill wait for all of them.
package node
