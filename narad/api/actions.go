package api

import (
	"context"
	"net/http"

	"narad.example/narad/wire"
)

// act is what pause, resume and skip have in common: an admin, a parent that exists, and the stub as the answer.
func act(c *call, read func() error, do func(ctx context.Context, parent, child string) (wire.Topic, error)) (answer, error) {
	if err := c.remotesAdmin(); err != nil {
		return answer{}, err
	}
	parent := c.r.PathValue("topic")
	if _, err := c.topic(parent, c.id.Owns); err != nil {
		return answer{}, err
	}
	if err := read(); err != nil {
		return answer{}, err
	}
	t, err := do(c.ctx(), parent, c.r.PathValue("child"))
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: shown(c, t)}, nil
}

func pauseChild(c *call) (answer, error) {
	var req wire.PauseChild
	return act(c, func() error { return c.decode(maxBody, wire.TooLarge, &req) },
		func(ctx context.Context, parent, child string) (wire.Topic, error) {
			return c.s.o.Links.Pause(ctx, c.caller(), parent, child, req.Reason)
		})
}

// resumeChild takes no body or an object (api.md, What clients lean on). One that accepts a new target is audited as that (DEC-36).
func resumeChild(c *call) (answer, error) {
	var req wire.ResumeChild
	read := func() error {
		body, err := c.read(maxBody, wire.TooLarge)
		if err != nil || len(body) == 0 {
			return err
		}
		if err = decodeJSON(body, &req); err == nil && req.AcceptTarget {
			c.event = "remote_child.accept_target"
		}
		return err
	}
	return act(c, read, func(ctx context.Context, parent, child string) (wire.Topic, error) {
		c.patient()
		return c.s.o.Links.Resume(ctx, c.caller(), parent, child, req.AcceptTarget)
	})
}

func skipRecord(c *call) (answer, error) {
	var req wire.SkipRecord
	read := func() error {
		if err := c.decode(maxBody, wire.TooLarge, &req); err != nil {
			return err
		}
		if req.Partition == nil || req.Offset == nil {
			return wire.Refuse(wire.Invalid, "partition and offset are needed")
		}
		return nil
	}
	return act(c, read, func(ctx context.Context, parent, child string) (wire.Topic, error) {
		return c.s.o.Links.Skip(ctx, c.caller(), parent, child, *req.Partition, *req.Offset)
	})
}
