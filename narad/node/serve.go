package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"narad.example/narad/api"
	"narad.example/narad/audit"
	"narad.example/narad/cluster"
	"narad.example/narad/meta"
)

// contactWithin is how old the last word of a leader may be on a ready node (api.md: Probes).
const contactWithin = 5 * time.Second

// serve opens the API and, where set, the metrics and profiling listeners.
func (n *Node) serve(context.Context) error {
	h := n.cfg.HTTP
	access := api.MetricsUsers
	switch {
	case h.MetricsAddr != "":
		access = api.MetricsElsewhere
	case h.MetricsUnauthenticated:
		access = api.MetricsEveryone
	}
	n.api = api.New(api.Options{
		Control: n.control, Users: n.users, Topics: n.topics, Listing: listing{n}, Links: apiLinks{n.remote.links},
		Moves: &cluster.Moves{Meta: n.meta, Dead: n.dead}, Members: members{n},
		Remotes: apiRemotes{n.remote.links}, Producer: n.ingress, Consumer: timedConsumer{&consumer{n: n}, &n.metrics.Broker}, Health: n, Audit: audit.New(n.log), Logger: n.log, Older: n.o.Older,
		Limits: api.Limits{
			BatchBytesInFlight: h.MaxBatchBodyBytesInFlight, ConsumesPerIdentity: h.MaxConsumeInFlightPerUser,
			ProducesPerIdentity: h.MaxProduceInFlightPerUser,
			ConsumeWait:         time.Duration(h.MaxConsumeWait),
		},
		Metrics: n.metrics.Handler(), MetricsAccess: access,
		Observe: func(route, method string, status int, d time.Duration) {
			n.metrics.Broker.HTTPRequests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
			n.metrics.Broker.HTTPSeconds.WithLabelValues(route, method).Observe(d.Seconds())
		},
		BudgetRefused: n.metrics.Broker.BudgetRefused.Inc,
	})
	if h.MetricsAddr != "" {
		if _, err := n.listen("http.metrics_addr", h.MetricsAddr, n.api.Plain(), nil); err != nil {
			return err
		}
	}
	if h.PprofAddr != "" {
		if _, err := n.listen("http.pprof_addr", h.PprofAddr, profiles(), nil); err != nil {
			return err
		}
	}
	var secure *tls.Config
	if n.certs != nil {
		secure = n.certs.config()
	}
	addr, err := n.listen("http.addr", h.Addr, n.untilCurrent(n.api), secure)
	if err != nil {
		return err
	}
	n.front.addr = addr
	n.front.whole.Store(true)
	return nil
}

// untilCurrent refuses the API's routes while this replica has not yet seen what was committed before the node started: it would deny
// users and topics that exist. Once it has, a lost leader closes nothing.
func (n *Node) untilCurrent(h http.Handler) http.Handler {
	if len(n.cfg.Cluster.Peers) == 0 { // a single node has passed a barrier by now
		n.status.current.Store(true)
		return h
	}
	n.loops.run("first look", n.firstLook)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.status.current.Load() || !strings.HasPrefix(r.URL.Path, "/v1/") && r.URL.Path != "/metrics" { // whose users are not known either
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"this node is starting"}` + "\n")) // a client that is gone reads nothing
	})
}

// firstLook waits until the replica is current for the first time. There is nothing to watch while nobody leads, so it asks again.
func (n *Node) firstLook(ctx context.Context) error {
	for ctx.Err() == nil {
		if n.current(ctx) == nil {
			n.moves.Begin()
			n.closeIngress() // before the first produce: a leader may have counted this node's records in its last life
			n.status.current.Store(true)
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
	return nil
}

// profiles serves net/http/pprof on a listener of its own.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// status is what the probes ask.
type status struct {
	strangers

	stopping, loggedIn atomic.Bool
	opened             atomic.Pointer[meta.Store] // nil before the metadata is open
	current            atomic.Bool                // the replica has held everything that was committed before the start
}

func (s *status) stop()  { s.stopping.Store(true) }
func (s *status) login() { s.loggedIn.Store(true) }

// Stopping tells whether the node has begun to stop (api.Health).
func (n *Node) Stopping() bool { return n.status.stopping.Load() }

var (
	errNoLeader = errors.New("no leader was heard of within 5 s")
	errNoLogin  = errors.New("the root admin does not exist yet")
	errBehind   = errors.New("the metadata of this node is not current yet")
	errNoMember = errors.New("this node is not registered as a member yet")
)

// Ready returns nil when a leader was heard of within 5 s, a login works and the other nodes know this one (api.Health).
func (n *Node) Ready(context.Context) (degraded string, err error) {
	if err := errors.Join(n.Failure(), n.ingress.Failed()); err != nil {
		return "", err
	}
	if !n.meta.IsLeader() && n.meta.LastContact() > contactWithin {
		if why := n.status.met(); why != nil {
			return "", fmt.Errorf("%w: %w", errNoLeader, why)
		}
		return "", errNoLeader
	}
	if !n.status.current.Load() {
		return "", errBehind
	}
	if !n.status.loggedIn.Load() {
		return "", errNoLogin
	}
	if _, ok := n.meta.Member(n.id); !ok { // the others cannot reach it, and the release gate is closed
		return "", errNoMember
	}
	if failed := n.failedPartitions(); failed > 0 {
		return fmt.Sprintf("%d partitions take no records until the next start", failed), nil
	}
	return "", nil
}

// failedPartitions counts the partitions of this node whose log does not open or has failed; their records wait in the ingress.
func (n *Node) failedPartitions() (failed int) {
	for _, t := range n.meta.Topics() {
		for _, p := range n.owned.mine(&t) {
			part, err := n.owned.open(&t, p)
			if _, still := n.meta.TopicByID(t.ID); still && (err != nil || part.Failed() != nil) {
				failed++
			}
		}
	}
	return failed
}
