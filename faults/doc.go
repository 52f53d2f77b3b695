// Package faults breaks things on a rig and proves that it did: toxics on the link and between nodes, a cut link, nodes that are parted
// from each other, hand over their lead, are killed, stopped or paused, disks that are full, fail, rot or lose what was not synced, clocks that are moved. One file per mechanism; Table lists every fault.
//
// It promises: a fault that did not land says so (ledger.Fault.Landed), by evidence that it measured itself and not by the
// word of the tool that it used; a heal is verified (state read back, a probe that passes, a node that answers), and one
// that cannot be verified is an error; what a fault rolls, it rolls from the source that it is given.
//
// Loops: a flapping fault runs one goroutine from Inject to Heal, which waits for it.
//
// It refused: judging (whether the product did right is not known here), toxicity below 1 and jitter (toxiproxy rolls them
// without our seed; flap rolls whole toxics), and undo by anything that the fault itself may change: a heal goes by names.
package faults
