package api

import (
	"net/http"

	"narad.example/narad/wire"
)

func healthz(c *call) (answer, error) {
	if c.s.o.Health.Stopping() {
		return answer{}, wire.Refuse(wire.Unavailable, "stopping")
	}
	return answer{status: http.StatusOK, body: wire.Health{Status: "ok"}}, nil
}

func readyz(c *call) (answer, error) {
	if c.s.o.Health.Stopping() {
		return answer{}, wire.Refuse(wire.Unavailable, "stopping")
	}
	degraded, err := c.s.o.Health.Ready(c.ctx())
	switch {
	case err == nil:
		return answer{status: http.StatusOK, body: wire.Health{Status: "ready", Degraded: degraded}}, nil
	case wire.KindOf(err) == wire.Internal:
		// The cause is an operator's to read, in the log: the probe needs no credentials.
		c.s.o.Logger.Warn("not ready", "error", err.Error())
		return answer{}, wire.Refuse(wire.Unavailable, "not ready")
	}
	return answer{}, err
}
