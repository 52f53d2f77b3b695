package cluster

// Owned filters what this process owns in the engine.
func Owned() string { return labelOwner + "=" + self().String() }

// OwnedBy filters what another process owned there; the start time must be read while it lives.
func OwnedBy(pid int) string { return labelOwner + "=" + identify(pid).String() }
