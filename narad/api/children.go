package api

import (
	"log/slog"
	"net/http"

	"narad.example/narad/access"
	"narad.example/narad/wire"
)

func attach(c *call) (answer, error) {
	var req wire.AttachChild
	if err := c.decode(maxBody, wire.Invalid, &req); err != nil {
		return answer{}, err
	}
	if err := c.knows(req); err != nil {
		return answer{}, err
	}
	parent := c.r.PathValue("topic")
	c.target = parent + "/" + req.Child
	if req.Remote != "" {
		c.event, c.remoteEvent = "remote_child.create", true
		return attachRemote(c, parent, req)
	}
	switch {
	case req.RemoteTopic != "" || req.From != "" || req.Lanes != 0 || req.DryRun:
		return answer{}, wire.Refuse(wire.Invalid, "remote_topic, from, lanes and dry_run need remote")
	case req.Child == "":
		return answer{}, wire.Refuse(wire.Invalid, "child required")
	}
	for _, name := range []string{parent, req.Child} { // a local attach needs both topics
		if _, err := c.topic(name, c.id.Owns); err != nil {
			return answer{}, err
		}
	}
	t, err := c.s.o.Topics.AttachLocal(c.ctx(), parent, req)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: shown(c, t)}, nil
}

func attachRemote(c *call, parent string, req wire.AttachChild) (answer, error) {
	if req.DryRun {
		c.extra = append(c.extra, slog.Bool("dry_run", true))
	}
	if err := c.remotesAdmin(); err != nil {
		return answer{}, err
	}
	if _, err := c.topic(parent, c.id.Owns); err != nil {
		return answer{}, err
	}
	c.patient()
	a, err := c.s.o.Links.Attach(c.ctx(), c.caller(), parent, req)
	if err != nil {
		return answer{}, err
	}
	if a.Warnings == nil {
		a.Warnings = []string{}
	}
	if !req.DryRun {
		return answer{status: http.StatusCreated, body: a}, nil
	}
	d := wire.DryRun{AttachOffsets: a.AttachOffsets, Capabilities: a.Capabilities, Checks: a.Checks, DryRun: true, Warnings: a.Warnings}
	if d.AttachOffsets == nil {
		d.AttachOffsets = []int64{}
	}
	if d.Checks == nil {
		d.Checks = []wire.Check{}
	}
	return answer{status: http.StatusOK, body: d}, nil
}

func listChildren(c *call) (answer, error) {
	t, err := c.topic(c.r.PathValue("topic"), c.id.Reads)
	if err != nil {
		return answer{}, err
	}
	partitions, err := c.flag("partitions", false)
	if err != nil {
		return answer{}, err
	}
	l, err := c.s.o.Listing.Listing(c.ctx(), t.Name, partitions)
	if err != nil {
		return answer{}, err
	}
	if l.Children == nil {
		l.Children = []wire.ChildEntry{}
	}
	return answer{status: http.StatusOK, body: c.listed(l)}, nil
}

func detach(c *call) (answer, error) {
	parent, name := c.r.PathValue("topic"), c.r.PathValue("child")
	child, found := c.s.o.Control.Find(name)
	found = found && child.Parent == parent
	if found && child.Remote != "" {
		c.event, c.remoteEvent = "remote_child.delete", true
	}
	// A local detach needs either topic; a stub's owner is its parent's.
	_, err := c.topic(parent, func(t *access.Topic) bool { return c.id.Owns(t) || found && c.id.Owns(&child) })
	if err != nil {
		return answer{}, err
	}
	if !found {
		return answer{}, wire.Refuse(wire.NotFound, "no such child")
	}
	force, err := readForce(c)
	if err != nil {
		return answer{}, err
	}
	if child.Remote != "" {
		c.patient()
		err = c.s.o.Links.Detach(c.ctx(), c.caller(), parent, name, force)
	} else {
		err = c.s.o.Topics.DetachLocal(c.ctx(), parent, name)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}
