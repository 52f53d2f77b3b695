package api

import (
	"strings"

	"narad.example/narad/wire"
)

// This file is what a release before remotes answers otherwise (Options.Older), which is how clusters of two releases and targets of an
// older one are tested (RUN-09, SND-04, SND-11, WRT-02).

// olderMessages is how many messages a batch of that release has.
const olderMessages = 100

// ofRemotes tells whether a route came with remotes.
func (rt route) ofRemotes() bool {
	return strings.HasPrefix(rt.event, "remote.") || strings.HasPrefix(rt.event, "remote_child.")
}

// knows refuses an attach with members that this release does not know.
func (c *call) knows(req wire.AttachChild) error {
	if c.s.o.Older && (req.Remote != "" || req.RemoteTopic != "" || req.From != "" || req.Lanes != 0 || req.DryRun) {
		return wire.Refuse(wire.Invalid, "invalid json: unknown field")
	}
	return nil
}

// olderChildren is a children listing without parent_id.
type olderChildren struct {
	Parent   string            `json:"parent"`
	Children []wire.ChildEntry `json:"children"`
}

// listed is a children listing as this release serves it.
func (c *call) listed(l wire.Children) any {
	if !c.s.o.Older {
		return l
	}
	return olderChildren{Parent: l.Parent, Children: l.Children} // nobody has remote children while a member is of that release
}
