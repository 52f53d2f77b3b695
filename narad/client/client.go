// Package client is a Go client of the HTTP API (api.md), used by the CLI and the harness: one method per route, the shapes of
// package wire, errors as *Error.
//
// It promises: a request goes out exactly once, nothing is retried and no redirect is followed, so that a credential reaches
// the host that was named and no other; a payload is sent and returned byte for byte; the request ID of every answer is at hand.
// It runs no loop and closes nothing: connections belong to the *http.Client that was given.
//
// Refused: retries and a choice between several nodes. What a failed produce may repeat is its caller's business.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"narad.example/narad/wire"
)

// Options of a Client. HTTP nil is a client of its own with Go's defaults; Name is sent as X-Narad-Client and User-Agent.
type Options struct {
	BaseURL  string // such as http://127.0.0.1:7942
	User     string // empty sends no credentials
	Password string
	HTTP     *http.Client
	Name     string // default narad-go
}

// Client talks to one node. All methods may be called at once.
type Client struct {
	base     string
	user     string
	password string
	name     string
	http     http.Client
}

// maxAnswer bounds what is read of an answer; the API's own largest is about 8 MiB.
const maxAnswer = 64 << 20

// New makes a Client.
func New(o Options) *Client {
	c := &Client{base: strings.TrimRight(o.BaseURL, "/"), user: o.User, password: o.Password, name: o.Name}
	if c.name == "" {
		c.name = "narad-go"
	}
	if o.HTTP != nil {
		c.http = *o.HTTP
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Error is an answer that refuses. Text is the API's "error" member, or empty when something else answered.
type Error struct {
	Status     int
	Text       string
	RetryAfter time.Duration
	RequestID  string
	Body       []byte
}

func (e *Error) Error() string {
	text := e.Text
	if text == "" {
		text = http.StatusText(e.Status)
	}
	return fmt.Sprintf("narad answered %d: %s", e.Status, text)
}

type idKey struct{}

// WithRequestID makes the requests under ctx carry an ID of 16 hex digits, which the answer and the audit line repeat.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// request is one request and what its answer must be.
type request struct {
	method string
	path   []string // segments, escaped by do
	query  url.Values
	json   any
	body   []byte // instead of json
	header http.Header
	want   []int
	into   any // decoded from the answer, unless it is empty
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func (c *Client) do(ctx context.Context, r request) (*reply, error) {
	var target strings.Builder
	target.WriteString(c.base)
	for _, s := range r.path {
		target.WriteByte('/')
		target.WriteString(url.PathEscape(s))
	}
	if len(r.query) > 0 {
		target.WriteByte('?')
		target.WriteString(r.query.Encode())
	}
	body := r.body
	if r.json != nil {
		var err error
		if body, err = marshal(r.json); err != nil {
			return nil, err
		}
	}
	h, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	c.headers(h, &r)
	res, err := c.http.Do(h)
	if err != nil {
		return nil, err
	}
	out := &reply{status: res.StatusCode, header: res.Header}
	out.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if closeErr := res.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return out, out.check(&r)
}

func (c *Client) headers(h *http.Request, r *request) {
	for name, values := range r.header {
		h.Header[name] = values
	}
	h.Header.Set("Accept", "application/json")
	h.Header.Set("User-Agent", c.name)
	h.Header.Set(wire.HeaderClient, c.name)
	switch {
	case r.json != nil:
		h.Header.Set("Content-Type", "application/json")
	case r.body != nil:
		h.Header.Set("Content-Type", "application/octet-stream")
	}
	if id, ok := h.Context().Value(idKey{}).(string); ok {
		h.Header.Set(wire.HeaderRequestID, id)
	}
	if c.user != "" {
		h.SetBasicAuth(c.user, c.password)
	}
}

// marshal is JSON without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// check compares an answer with what was wanted.
func (a *reply) check(r *request) error {
	for _, want := range r.want {
		if a.status != want {
			continue
		}
		if r.into == nil || len(a.body) == 0 {
			return nil
		}
		if err := json.Unmarshal(a.body, r.into); err != nil {
			return fmt.Errorf("decode the answer: %w", err)
		}
		return nil
	}
	e := &Error{Status: a.status, RequestID: a.header.Get(wire.HeaderRequestID), Body: a.body}
	var body wire.ErrorBody
	if json.Unmarshal(a.body, &body) == nil {
		e.Text = body.Error
	}
	if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// Health reads /healthz.
func (c *Client) Health(ctx context.Context) (wire.Health, error) {
	var h wire.Health
	_, err := c.do(ctx, request{method: http.MethodGet, path: []string{"healthz"}, want: []int{http.StatusOK}, into: &h})
	return h, err
}

// Ready reads /readyz.
func (c *Client) Ready(ctx context.Context) (wire.Health, error) {
	var h wire.Health
	_, err := c.do(ctx, request{method: http.MethodGet, path: []string{"readyz"}, want: []int{http.StatusOK}, into: &h})
	return h, err
}

// Metrics reads /metrics as text.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: []string{"metrics"}, want: []int{http.StatusOK}})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
