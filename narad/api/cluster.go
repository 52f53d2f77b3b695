package api

import (
	"log/slog"
	"net/http"
	"strconv"

	"narad.example/narad/wire"
)

func listMoves(c *call) (answer, error) {
	if !c.id.Admin {
		return answer{}, errNotAdmin
	}
	moves, err := c.s.o.Moves.Moves(c.ctx())
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: moves}, nil
}

func abortMove(c *call) (answer, error) {
	if !c.id.Admin {
		return answer{}, errNotAdmin
	}
	p, err := strconv.Atoi(c.r.PathValue("partition"))
	if err != nil || p < 0 {
		return answer{}, wire.Refuse(wire.Invalid, "partition must be a number from 0 on")
	}
	a, err := c.s.o.Moves.Abort(c.ctx(), c.r.PathValue("topic"), p)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: a}, nil
}

func listMembers(c *call) (answer, error) {
	if !c.id.Admin {
		return answer{}, errNotAdmin
	}
	detail, err := c.flag("detail", false)
	if err != nil {
		return answer{}, err
	}
	all, err := c.s.o.Members.Members(c.ctx(), detail)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: all}, nil
}

func decommission(c *call) (answer, error) {
	if !c.id.Admin {
		return answer{}, errNotAdmin
	}
	dry, err := c.flag("dry_run", false)
	if err != nil {
		return answer{}, err
	}
	id := c.r.PathValue("member")
	if dry {
		c.extra = append(c.extra, slog.Bool("dry_run", true))
		plan, err := c.s.o.Members.Plan(c.ctx(), id)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, body: plan}, nil
	}
	if err := c.s.o.Members.Decommission(c.ctx(), id); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func cancelDecommission(c *call) (answer, error) {
	if !c.id.Admin {
		return answer{}, errNotAdmin
	}
	if err := c.s.o.Members.Cancel(c.ctx(), c.r.PathValue("member")); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func forgetMember(c *call) (answer, error) {
	if !c.id.Admin {
		return answer{}, errNotAdmin
	}
	f, err := c.s.o.Members.Forget(c.ctx(), c.r.PathValue("member"))
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: f}, nil
}
