package cluster

// Owned filters what this process owns in the engine.
func Owned() string { return labelOwner + "=" + self().String() }

// OwnedBy filters what another process owned there; the start time must be read while it lives.
func OwnedBy(pid int) string { return labelOwner + "=" + identify(pid).String() }

// FirstOf is the process of a node of a rig of processes; what it starts joins its group.
func FirstOf(r Rig, node string) int {
	for _, c := range r.(*processRig).own {
		if c.name == node {
			return c.started()[0]
		}
	}
	return 0
}
