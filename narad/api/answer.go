package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"log/slog"

	"narad.example/narad/audit"
	"narad.example/narad/wire"
)

// statuses gives each kind of refusal its status; nothing else does.
var statuses = map[wire.Kind]int{
	wire.Internal:     http.StatusInternalServerError,
	wire.Invalid:      http.StatusBadRequest,
	wire.Unauthorized: http.StatusUnauthorized,
	wire.Denied:       http.StatusForbidden,
	wire.NotFound:     http.StatusNotFound,
	wire.Conflict:     http.StatusConflict,
	wire.Gone:         http.StatusGone,
	wire.Precondition: http.StatusPreconditionFailed,
	wire.TooLarge:     http.StatusRequestEntityTooLarge,
	wire.Unsupported:  http.StatusUnsupportedMediaType,
	wire.Throttled:    http.StatusTooManyRequests,
	wire.BadGateway:   http.StatusBadGateway,
	wire.Unavailable:  http.StatusServiceUnavailable,
}

// statusLeft is what the metrics count for a client that did not wait for its answer.
const statusLeft = 499

// errCut is a body that did not arrive whole. It is a 408, not a 400: the request was not wrong, and a sender must send it again
// rather than look for a bad record in it.
var errCut = errors.New("the body did not arrive whole")

func statusOf(c *call, err error) int {
	var p *wire.Problem
	switch {
	case errors.As(err, &p):
		return statuses[p.Kind]
	case errors.Is(err, errCut):
		return http.StatusRequestTimeout
	case errors.Is(err, context.Canceled) && c.ctx().Err() != nil:
		return statusLeft
	}
	return http.StatusInternalServerError
}

// refuse answers an error.
func (c *call) refuse(err error) {
	status := statusOf(c, err)
	var p *wire.Problem
	switch {
	case errors.As(err, &p) && p.Kind != wire.Internal:
		c.problem(status, p)
		return
	case status == http.StatusRequestTimeout:
		c.Header().Set("Connection", "close")
		c.problem(status, &wire.Problem{Text: errCut.Error()})
		return
	case status == statusLeft:
		c.status = statusLeft // nobody reads an answer
		return
	}
	if !errors.Is(err, errPanic) {
		c.s.o.Logger.Error("request failed", "route", c.route, "request_id", c.requestID, "error", err.Error())
	}
	c.problem(http.StatusInternalServerError, &wire.Problem{Text: "internal error"})
}

// problem writes a refusal: the text first, then the further members in the order of their names.
func (c *call) problem(status int, p *wire.Problem) {
	h := c.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="narad"`)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.RetryAfter.Seconds())), 10))
	}
	body := append([]byte(`{"error":`), encode(p.Text)...)
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		if name == "error" {
			continue
		}
		body = append(body, ',')
		body = append(body, encode(name)...)
		body = append(body, ':')
		body = append(body, encode(p.Fields[name])...)
	}
	c.write(status, append(body, "}\n"...))
}

// encode is JSON without HTML escapes. What handlers answer with are plain shapes, which always encode.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("api: an answer does not encode")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (c *call) answer(a answer) {
	switch {
	case a.raw != nil:
		c.write(a.status, a.raw)
	case a.body != nil:
		c.write(a.status, append(encode(a.body), '\n'))
	default:
		c.WriteHeader(a.status)
	}
}

func (c *call) write(status int, body []byte) {
	c.Header().Set("Content-Type", "application/json")
	c.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.WriteHeader(status)
	_, _ = c.Write(body) // the client may have left; there is nobody to tell
}

// mayApply stands in the text of a metadata write whose outcome nobody knows; clients match it (api.md, What clients lean on).
const mayApply = "the change may still be applied"

// outcome is the audit line's (api.md, Audit events).
func (c *call) outcome(status int, err error) string {
	if err == nil {
		return audit.OK
	}
	var p *wire.Problem
	if !errors.As(err, &p) {
		if status == statusLeft {
			return audit.Unknown // the write may have gone on without its client
		}
		return audit.Failed
	}
	if settled, ok := p.Fields["settled"].(bool); ok && !settled {
		c.extra = append(c.extra, slog.Bool("settled", false)) // it committed, only the confirmation is missing
		return audit.OK
	}
	if p.Kind == wire.Unavailable && strings.Contains(p.Text, mayApply) {
		return audit.Unknown
	}
	if c.remoteEvent {
		if class, ok := p.Fields["class"]; ok {
			if s, isText := class.(string); isText {
				return s
			}
			if s, isState := class.(wire.LinkState); isState {
				return string(s)
			}
		}
		return p.Text
	}
	switch {
	case status == http.StatusForbidden:
		return audit.Denied
	case status < 500:
		return audit.Rejected
	}
	return audit.Failed
}

// patient gives a route that waits for other nodes a minute for its answer (UNS-04).
func (c *call) patient() {
	// A writer without deadlines, as in tests, has none to extend.
	_ = http.NewResponseController(c.ResponseWriter).SetWriteDeadline(time.Now().Add(time.Minute))
}
