// Package sim is the backend that runs whole clusters in one process in virtual time: nodes, their peers, the tap and the
// scripted target live on a network in memory inside a testing/synctest bubble, so that an hour of backoff costs nothing
// (HAR-16). The toxics on its link are toxiproxy's own, run on channels and plain time, so that a toxic of a scenario file
// means the same as on the other backends.
//
// Kill freezes the node's file system, cuts its connections and then ends its goroutines: what was written stays, what was
// not is lost, as after SIGKILL. Pause holds every byte from and to the node; its timers go on, which a real SIGSTOP would
// stop: scenarios that depend on the difference name their backends.
//
// A node's disk can be full, slow, failing or rotten, and lose its power (package vfs); its Raft log lies elsewhere and does not. Its wall
// clock can be moved away from the bubble's, which goes on measuring every interval.
//
// A side of several nodes is one cluster: its nodes are hosts of their own names, their Raft and node RPC run over the same network, and
// the tap deals the link's requests to the target's nodes in turn, dead ones included.
//
// Everything here must be called inside one bubble. Each connection runs four goroutines at most, all of which end when the
// network is closed.
package sim
