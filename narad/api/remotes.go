package api

import (
	"net/http"

	"narad.example/narad/wire"
)

// namedRemote names the audit line's target once the caller is an admin. What is no remote's name is left out: somebody may have put
// a secret in its place.
func namedRemote(c *call, name string) error {
	c.target = ""
	if remoteName(name) {
		c.target = name
	}
	return c.remotesAdmin()
}

// remoteName tells whether s is [a-z][a-z0-9-]{0,62}.
func remoteName(s string) bool {
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '-')
		if !plain {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 63
}

func createRemote(c *call) (answer, error) {
	if err := c.remotesAdmin(); err != nil {
		return answer{}, err
	}
	var req wire.CreateRemote
	if err := c.decode(maxRemotesBody, wire.TooLarge, &req); err != nil {
		return answer{}, err
	}
	if err := namedRemote(c, req.Name); err != nil {
		return answer{}, err
	}
	return written(http.StatusCreated)(c.s.o.Remotes.CreateRemote(c.ctx(), c.caller(), req))
}

// written answers a write: with neither links nor nodes.
func written(status int) func(r wire.Remote, err error) (answer, error) {
	return func(r wire.Remote, err error) (answer, error) {
		if err != nil {
			return answer{}, err
		}
		r.Links, r.Nodes = nil, nil
		return answer{status: status, body: r}, nil
	}
}

func listRemotes(c *call) (answer, error) {
	if err := c.remotesAdmin(); err != nil {
		return answer{}, err
	}
	nodes, err := c.flag("nodes", true)
	if err != nil {
		return answer{}, err
	}
	l, err := c.s.o.Remotes.Remotes(c.ctx(), nodes)
	if err != nil {
		return answer{}, err
	}
	if l.Remotes == nil {
		l.Remotes = []wire.Remote{}
	}
	if !nodes {
		l.Lingering, l.NotAnswering = nil, nil
		for i := range l.Remotes {
			l.Remotes[i].Nodes = nil
		}
	}
	return answer{status: http.StatusOK, body: l}, nil
}

func getRemote(c *call) (answer, error) {
	name := c.r.PathValue("remote")
	if err := namedRemote(c, name); err != nil {
		return answer{}, err
	}
	nodes, err := c.flag("nodes", true)
	if err != nil {
		return answer{}, err
	}
	r, err := c.s.o.Remotes.Remote(c.ctx(), name, nodes)
	if err != nil {
		return answer{}, err
	}
	if !nodes {
		r.Nodes = nil
	}
	return answer{status: http.StatusOK, body: r}, nil
}

func patchRemote(c *call) (answer, error) {
	name := c.r.PathValue("remote")
	if err := namedRemote(c, name); err != nil {
		return answer{}, err
	}
	var req wire.PatchRemote
	if err := c.decode(maxRemotesBody, wire.TooLarge, &req); err != nil {
		return answer{}, err
	}
	if req.Limits != nil && *req.Limits == (wire.PatchLimits{}) {
		req.Limits = nil
	}
	if req == (wire.PatchRemote{}) {
		return answer{}, wire.Refuse(wire.Invalid, "nothing to change")
	}
	return written(http.StatusOK)(c.s.o.Remotes.PatchRemote(c.ctx(), c.caller(), name, req))
}

func deleteRemote(c *call) (answer, error) {
	name := c.r.PathValue("remote")
	if err := namedRemote(c, name); err != nil {
		return answer{}, err
	}
	force, err := readForce(c)
	if err != nil {
		return answer{}, err
	}
	if err = c.s.o.Remotes.DeleteRemote(c.ctx(), c.caller(), name, force); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func testRemote(c *call) (answer, error) {
	name := c.r.PathValue("remote")
	if err := namedRemote(c, name); err != nil {
		return answer{}, err
	}
	var req wire.TestRemote
	if err := c.decode(maxRemotesBody, wire.TooLarge, &req); err != nil {
		return answer{}, err
	}
	c.patient()
	t, err := c.s.o.Remotes.Test(c.ctx(), c.caller(), name, req)
	if err != nil {
		return answer{}, err
	}
	if t.Checks == nil {
		t.Checks = []wire.Check{}
	}
	return answer{status: http.StatusOK, body: t}, nil
}

// reencryptRemotes takes no body or an empty object (api.md, What clients lean on).
func reencryptRemotes(c *call) (answer, error) {
	if err := c.remotesAdmin(); err != nil {
		return answer{}, err
	}
	body, err := c.read(maxBody, wire.TooLarge)
	if err == nil && len(body) > 0 {
		err = decodeJSON(body, &struct{}{})
	}
	if err != nil {
		return answer{}, err
	}
	c.patient()
	r, err := c.s.o.Remotes.Reencrypt(c.ctx(), c.caller())
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: r}, nil
}
