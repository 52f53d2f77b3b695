package api

import (
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
