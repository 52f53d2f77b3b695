package api

import (
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"narad.example/narad/access"
	"narad.example/narad/audit"
	"narad.example/narad/wire"
)

// MetricsAccess says who reads /metrics on the API port.
type MetricsAccess uint8

// The metrics access modes.
const (
	MetricsUsers     MetricsAccess = iota // any valid user
	MetricsEveryone                       // http.metrics_unauthenticated
	MetricsElsewhere                      // http.metrics_addr: not on the API port at all
)

// Limits of a Server; a zero member is its default of api.md.
type Limits struct {
	BatchBytesInFlight  int64         // batch bodies over 1 MiB being read, 256 MiB
	ConsumesPerIdentity int           // 1,024
	ProducesPerIdentity int           // 0 is no limit
	ConsumeWait         time.Duration // 10 s
	Messages            int           // per batch produce, 1,000
}

// Options of a Server.
type Options struct {
	Control  *access.Control
	Users    *access.Users
	Topics   Topics
	Listing  Listing
	Links    Links
	Remotes  Remotes
	Moves    Moves
	Members  Members
	Producer Producer
	Consumer Consumer
	Health   Health
	Audit    *audit.Log
	Logger   *slog.Logger
	Limits   Limits
	Older    bool // answers as a release before remotes does (node.Options.Older)

	Metrics       http.Handler // nil: no such route
	MetricsAccess MetricsAccess
	// Observe is called once per request with the pattern's path (`unmatched` for none) and 499 for a client that left.
	Observe func(route, method string, status int, d time.Duration)
	// BudgetRefused is called for each batch refused because BatchBytesInFlight was used up.
	BudgetRefused func()
}

// Server is the handler of the API port.
type Server struct {
	o        Options
	mux      *http.ServeMux
	budget   budget
	consumes inFlight
	produces inFlight
	unzstds  sync.Pool // of *zstd.Decoder; a decoder stays with its server
}

// New makes a Server.
func New(o Options) *Server {
	l := &o.Limits
	if o.Older {
		l.Messages = olderMessages
	}
	l.BatchBytesInFlight = orDefault(l.BatchBytesInFlight, 256<<20)
	l.ConsumesPerIdentity = orDefault(l.ConsumesPerIdentity, 1024)
	l.ConsumeWait = orDefault(l.ConsumeWait, 10*time.Second)
	l.Messages = orDefault(l.Messages, wire.MaxMessages)
	if o.Observe == nil {
		o.Observe = func(string, string, int, time.Duration) {}
	}
	if o.BudgetRefused == nil {
		o.BudgetRefused = func() {}
	}
	s := &Server{o: o, mux: http.NewServeMux(), budget: budget{limit: l.BatchBytesInFlight}}
	s.consumes.limit, s.produces.limit = l.ConsumesPerIdentity, l.ProducesPerIdentity
	s.unzstds.New = newUnzstd
	for _, rt := range routes() {
		if o.Older && rt.ofRemotes() {
			continue
		}
		s.mux.Handle(rt.pattern, s.serve(rt))
	}
	if o.Metrics != nil && o.MetricsAccess != MetricsElsewhere {
		s.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			w.(*call).route = "/metrics"
			o.Metrics.ServeHTTP(w, r)
		})
	}
	return s
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Plain is the handler of http.metrics_addr: the metrics and the probes, without credentials.
func (s *Server) Plain() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s)
	mux.Handle("GET /readyz", s)
	if s.o.Metrics != nil {
		mux.Handle("GET /metrics", s.o.Metrics)
	}
	return mux
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{ResponseWriter: w, s: s, r: r, requestID: requestID(r), route: "unmatched"}
	w.Header().Set(wire.HeaderRequestID, c.requestID)
	defer func() {
		s.o.Observe(c.route, method(r.Method), c.status, time.Since(start))
	}()
	defer s.recovered(c)
	escaped := r.URL.EscapedPath()
	if escaped == "/v1/remotes" || strings.HasPrefix(escaped, "/v1/remotes/") ||
		strings.HasPrefix(escaped, "/v1/topics/") && strings.Contains(escaped, "/children") {
		w.Header().Set("Cache-Control", "no-store") // DEC-22
		w.Header().Set("X-Content-Type-Options", "nosniff")
	}
	if !s.open(r, escaped) {
		if err := c.authenticate(); err != nil {
			c.refuse(err)
			return
		}
	}
	// ServeMux would redirect to the clean path; here that is an unknown route.
	if clean := path.Clean(escaped); clean != escaped && clean+"/" != escaped || !strings.HasPrefix(escaped, "/") {
		s.unmatched(c, http.NotFoundHandler())
		return
	}
	if h, pattern := s.mux.Handler(r); pattern == "" {
		s.unmatched(c, h)
		return
	}
	s.mux.ServeHTTP(c, r)
}

// unmatched answers an unknown route or method in Go's plain words, behind the guard.
func (s *Server) unmatched(c *call, plain http.Handler) {
	if p := c.guard(); p != nil {
		c.refuse(p)
		return
	}
	plain.ServeHTTP(c, c.r)
}

// open tells whether a request needs no credentials.
func (s *Server) open(r *http.Request, escaped string) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch escaped {
	case "/healthz", "/readyz":
		return true
	case "/metrics":
		return s.o.MetricsAccess == MetricsEveryone
	}
	return false
}

// recovered turns a panic outside of a handler into a 500. What was panicked with is not logged unless it is the runtime's own,
// since it may quote anything (CRD-13).
func (s *Server) recovered(c *call) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // the sentinel is panicked with as it is
		panic(v)
	}
	s.logPanic(c, v)
	if c.status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun and cannot be taken back
	}
	c.refuse(errPanic)
}

func (s *Server) logPanic(c *call, v any) {
	s.o.Logger.Error("panic in a request", "route", c.route, "request_id", c.requestID, "panic", panicText(v),
		"stack", string(debug.Stack()))
}

// method bounds the metric's label.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
