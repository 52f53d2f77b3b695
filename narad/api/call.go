package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"narad.example/narad/access"
	"narad.example/narad/wire"
)

// call is one request on its way through the handlers. It stands in for the response writer, so that ServeMux passes it on.
type call struct {
	http.ResponseWriter
	s         *Server
	r         *http.Request
	id        access.Identity
	requestID string
	route     string
	status    int // of the answer, 0 before it
	query     url.Values

	event       string // of the audit line, empty for none
	target      string
	remoteEvent bool // the outcome is `ok` or the refusal
	extra       []slog.Attr
}

// WriteHeader keeps the status for the metrics.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write writes a body.
func (c *call) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the real writer.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *call) ctx() context.Context { return c.r.Context() }

// requestID is the request's own when it sent one of 16 hex digits, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(wire.HeaderRequestID)
	if len(id) == 16 && strings.IndexFunc(id, notHex) < 0 {
		return id
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func notHex(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F')
}

func (c *call) authenticate() error {
	user, password, ok := c.r.BasicAuth()
	if !ok && c.s.o.Control.Enabled() {
		return wire.Refuse(wire.Unauthorized, "unauthorized")
	}
	id, err := c.s.o.Control.Check(c.ctx(), user, password)
	if err != nil {
		return err
	}
	c.id = id
	return nil
}

// guard is the cross-site guard: a browser cannot send any of these without asking first.
func (c *call) guard() *wire.Problem {
	switch c.r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return nil
	}
	if c.r.Header.Get(wire.HeaderClient) != "" {
		return nil
	}
	media, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/octet-stream":
		return nil
	}
	return wire.Refuse(wire.Unsupported,
		"Content-Type must be application/json or application/octet-stream, or %s must be sent", wire.HeaderClient)
}

// actor is who the audit line names.
func (c *call) actor() string {
	if c.id.Name == "" {
		return "anonymous" // security is off
	}
	return c.id.Name
}

func (c *call) caller() Caller {
	return Caller{Name: c.id.Name, Admin: c.id.Admin, RequestID: c.requestID}
}

// param reads a query parameter that may stand once.
func (c *call) param(name string) (value string, present bool, err error) {
	if c.query == nil {
		if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
			return "", false, wire.Refuse(wire.Invalid, "bad query")
		}
	}
	switch vs := c.query[name]; len(vs) {
	case 0:
		return "", false, nil
	case 1:
		return vs[0], true, nil
	}
	return "", true, wire.Refuse(wire.Invalid, "%s stands more than once in the query", name)
}

// flag reads a parameter that is true or false.
func (c *call) flag(name string, absent bool) (bool, error) {
	v, present, err := c.param(name)
	switch {
	case err != nil || !present:
		return absent, err
	case v == "true":
		return true, nil
	case v == "false":
		return false, nil
	}
	return false, wire.Refuse(wire.Invalid, "%s must be true or false", name)
}

// number reads a parameter that is an integer of at least 0.
func (c *call) number(name string, bits int) (n int64, present bool, err error) {
	v, present, err := c.param(name)
	if err != nil || !present {
		return 0, present, err
	}
	n, err = strconv.ParseInt(v, 10, bits)
	if err != nil || n < 0 || v[0] == '+' {
		return 0, true, wire.Refuse(wire.Invalid, "bad %s", name)
	}
	return n, true, nil
}

// partition reads the partition parameter, nil when absent.
func (c *call) partition() (*int, error) {
	n, present, err := c.number("partition", 32)
	if err != nil || !present {
		return nil, err
	}
	p := int(n)
	return &p, nil
}

var (
	errNoGrant  = wire.Refuse(wire.Denied, "no grant on this topic")
	errNoTopic  = wire.Refuse(wire.NotFound, "no such topic")
	errNotAdmin = wire.Refuse(wire.Denied, "admin only")
	errInsecure = wire.Refuse(wire.Denied, "remotes require security")
)

// topic finds a topic that the caller may touch as allowed says. A name that does not exist is a 404 only to whom a grant shows it.
func (c *call) topic(name string, allowed func(*access.Topic) bool) (access.Topic, error) {
	t, ok := c.s.o.Control.Find(name)
	if !ok {
		t.Name = name
		if !c.id.Touches(name) {
			return t, errNoGrant
		}
		return t, errNoTopic
	}
	if !allowed(&t) {
		return t, errNoGrant
	}
	return t, nil
}

// granted finds the topic of the path, for a produce or consume.
func (c *call) granted(action string) (access.Topic, error) {
	return c.topic(c.r.PathValue("topic"), func(t *access.Topic) bool { return c.id.Granted(action, t.Name) })
}

// remotesAdmin refuses who may not see remotes.
func (c *call) remotesAdmin() error {
	if !c.s.o.Control.Enabled() {
		return errInsecure
	}
	if !c.id.Admin {
		return errNotAdmin
	}
	return nil
}
