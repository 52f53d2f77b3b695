package api

import (
	"net/http"

	"narad.example/narad/wire"
)

// A body over the limit is a 400 on the routes of users (api.md, limits).

func createUser(c *call) (answer, error) {
	var req wire.CreateUser
	if err := c.decode(maxBody, wire.Invalid, &req); err != nil {
		return answer{}, err
	}
	c.target = req.Username
	u, err := c.s.o.Users.Create(c.ctx(), &c.id, req)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: u}, nil
}

func listUsers(c *call) (answer, error) {
	us, err := c.s.o.Users.List(&c.id)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: us}, nil
}

func getUser(c *call) (answer, error) {
	u, err := c.s.o.Users.Get(&c.id, c.r.PathValue("user"))
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: u}, nil
}

func deleteUser(c *call) (answer, error) {
	if err := c.s.o.Users.Delete(c.ctx(), &c.id, c.r.PathValue("user")); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func replaceGrants(c *call) (answer, error) {
	var req wire.ReplaceGrants
	if err := c.decode(maxBody, wire.Invalid, &req); err != nil {
		return answer{}, err
	}
	if req.Grants == nil { // absent: nobody loses all grants by a body that forgot them
		return answer{}, wire.Refuse(wire.Invalid, "grants required")
	}
	u, err := c.s.o.Users.ReplaceGrants(c.ctx(), &c.id, c.r.PathValue("user"), req.Grants)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: u}, nil
}

func changePassword(c *call) (answer, error) {
	var req wire.ChangePassword
	if err := c.decode(maxBody, wire.Invalid, &req); err != nil {
		return answer{}, err
	}
	if err := c.s.o.Users.ChangePassword(c.ctx(), &c.id, c.r.PathValue("user"), req); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}
