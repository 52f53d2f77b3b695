// Package metrics is the one place where the series of a node are named (metrics.md): a Set registers them, the rooms of the
// house count through small interfaces of their own, and package node joins the two. No label carries a URL, a user name, a
// key version or a ciphertext (CRD-13).
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Set is every series of one node, on a registry of its own, so that several nodes live in one process.
type Set struct {
	registry *prometheus.Registry
	Fanout   Fanout
	Remote   Remote
	Broker   Broker
}

// Fanout counts the cursors (labels parent, child, and partition where the series is one cursor's). The gauges of cursors are
// registered by whoever reads the cursors (Set.Collect).
type Fanout struct {
	LagMessages       *prometheus.GaugeVec
	DueLagSeconds     *prometheus.GaugeVec
	Committed         *prometheus.CounterVec
	Dropped           *prometheus.CounterVec
	BatchRecords      prometheus.Histogram
	BatchBytes        prometheus.Histogram
	State             *prometheus.GaugeVec
	RemoteLagSeconds  *prometheus.GaugeVec
	RetentionHeadroom *prometheus.GaugeVec
	LastSuccess       *prometheus.GaugeVec
	Rereads           *prometheus.CounterVec
	CheckFailures     *prometheus.CounterVec
	Skipped           *prometheus.CounterVec
}

// Remote counts what goes to each remote and what is kept of its credential (label remote).
type Remote struct {
	Requests           *prometheus.CounterVec
	RequestSeconds     *prometheus.HistogramVec
	Errors             *prometheus.CounterVec
	Resent             *prometheus.CounterVec
	GateBackoff        *prometheus.GaugeVec
	InflightWait       *prometheus.HistogramVec
	HeldBytes          prometheus.Gauge
	ChunkLimit         *prometheus.GaugeVec
	WireBytes          *prometheus.CounterVec
	BodyBytes          *prometheus.CounterVec
	CredentialState    *prometheus.GaugeVec
	CredentialDecrypts *prometheus.CounterVec
	DestinationRefused *prometheus.CounterVec
	RTT                *prometheus.GaugeVec
	CredentialAge      *prometheus.GaugeVec // read when it is scraped, like the three below
	KeyCurrent         *prometheus.GaugeVec
	KeySeals           *prometheus.GaugeVec
	KeyAge             *prometheus.GaugeVec
	Allowlist          prometheus.Gauge
	PlaintextRaft      prometheus.Gauge
}

// Broker counts the node around the sender.
type Broker struct {
	Produced          *prometheus.CounterVec
	BytesProduced     prometheus.Counter
	Consumed          prometheus.Counter
	BytesConsumed     prometheus.Counter
	Extended          prometheus.Counter
	Nacked            prometheus.Counter
	ConsumeWait       *prometheus.HistogramVec
	ConsumeEmpty      prometheus.Counter
	ConsumerDropped   prometheus.Counter
	ProduceRejections *prometheus.CounterVec
	HTTPRequests      *prometheus.CounterVec
	HTTPSeconds       *prometheus.HistogramVec
	Errors            *prometheus.CounterVec
	BudgetRefused     prometheus.Counter
	FsyncSeconds      *prometheus.HistogramVec
	RaftState         *prometheus.GaugeVec // read when it is scraped, like all below
	RaftHasLeader     *prometheus.GaugeVec
	ConsumerLag       *prometheus.GaugeVec
	InFlight          *prometheus.GaugeVec
	AckedAhead        *prometheus.GaugeVec
	OldestUnconsumed  *prometheus.GaugeVec
	MovesBlocked      *prometheus.GaugeVec

	DecommissionBlocked *prometheus.GaugeVec
}

// New registers every series.
func New() *Set {
	s := Simulated()
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Simulated leaves out the series of the process, which several simulated nodes share and which cost more to read than all others.
func Simulated() *Set {
	f := factory{prometheus.NewRegistry()}
	return &Set{registry: f.registry, Fanout: newFanout(f), Remote: newRemote(f), Broker: newBroker(f)}
}

func newFanout(f factory) Fanout {
	cursor := []string{"parent", "child", "partition"}
	link := []string{"parent", "child"}
	return Fanout{
		LagMessages:       f.loose("fanout_lag_messages", "Records of the parent that the cursor has not passed.", cursor...),
		DueLagSeconds:     f.loose("fanout_due_lag_seconds", "Age of the oldest due record that the cursor has not passed.", cursor...),
		Committed:         f.counter("fanout_committed_total", "Records that cursors passed.", link...),
		Dropped:           f.counter("fanout_child_dropped_messages", "Records that retention took before the cursor reached them.", link...),
		BatchRecords:      f.histogram("fanout_batch_records", "Records in a slab.", prometheus.ExponentialBuckets(1, 4, 8)),
		BatchBytes:        f.histogram("fanout_batch_bytes", "Bytes in a slab.", prometheus.ExponentialBuckets(256, 4, 9)),
		State:             f.loose("fanout_remote_state", "1 for the state that the cursor is in.", append(cursor, "state")...),
		RemoteLagSeconds:  f.loose("fanout_remote_lag_seconds", "Age of the oldest unsent record.", cursor...),
		RetentionHeadroom: f.loose("fanout_remote_retention_headroom_seconds", "Time until retention reaches the oldest unsent record.", cursor...),
		LastSuccess:       f.loose("fanout_remote_last_success_timestamp_seconds", "Unix time of the last accepted request.", link...),
		Rereads:           f.counter("fanout_remote_rereads_total", "Slabs read again because they could not be held.", link...),
		CheckFailures:     f.counter("fanout_remote_check_failures_total", "Checks of the target that errored.", link...),
		Skipped:           f.counter("fanout_remote_skipped_records_total", "Records passed unsent because an admin skipped them.", link...),
	}
}

func newRemote(f factory) Remote {
	const r = "remote"
	return Remote{
		Requests:           f.counter("remote_requests_total", "Requests to the remote by status, or error.", r, "code"),
		RequestSeconds:     f.histograms("remote_request_seconds", "Time of a request to the remote.", r),
		Errors:             f.counter("remote_errors_total", "Failed requests, checks included, by class.", r, "class"),
		Resent:             f.counter("remote_resent_records_total", "Records of failed requests that may have landed.", r),
		GateBackoff:        f.gauge("remote_gate_backoff_seconds", "Present wait of the closed gate, 0 when open.", r),
		HeldBytes:          f.oneGauge("remote_held_bytes", "Bytes of records that waiting lanes hold."),
		InflightWait:       f.histograms("remote_inflight_wait_seconds", "Time spent waiting for a request slot.", r),
		ChunkLimit:         f.gauge("remote_chunk_bytes_limit", "The lowest byte cap of the node's lanes.", r),
		WireBytes:          f.counter("remote_wire_bytes_total", "Body bytes as sent.", r),
		BodyBytes:          f.counter("remote_body_bytes_total", "Body bytes before compression.", r),
		CredentialState:    f.gauge("remote_credential_state", "1 for the state of the credential on this node.", r, "state"),
		CredentialDecrypts: f.counter("remote_credential_decrypts_total", "Decrypts, one per credential version.", r),
		DestinationRefused: f.counter("remote_destination_refused_total", "Dials that the address guard refused.", r, "reason"),
		RTT:                f.gauge("remote_rtt_seconds", "Time of TCP and TLS of the last connection.", r),
		CredentialAge:      f.loose("remote_credential_age_seconds", "Time since the password was set.", r),
		KeyCurrent:         f.loose("remote_credential_key_current", "1 when the password is sealed under the current key.", r),
		KeySeals:           f.loose("remote_key_seals", "Passwords sealed on this node under a key since it started.", "key"),
		KeyAge:             f.loose("remote_key_age_seconds", "Age of the oldest password that is sealed under a key.", "key"),
		Allowlist:          f.oneGauge("remotes_allowlist_configured", "1 when remotes.allowed_hosts is set."),
		PlaintextRaft:      f.oneGauge("remotes_plaintext_raft", "1 when remotes are held over plaintext Raft."),
	}
}

func newBroker(f factory) Broker {
	return Broker{
		Produced:          f.counter("messages_produced_total", "Records committed.", "topic", "partition"),
		BytesProduced:     f.one("bytes_produced_total", "Payload bytes accepted."),
		Consumed:          f.one("messages_consumed_total", "Records leased to consumers."),
		BytesConsumed:     f.one("bytes_consumed_total", "Payload bytes leased to consumers."),
		Extended:          f.one("ack_extended_total", "Leases renewed."),
		Nacked:            f.one("nack_total", "Leases given back."),
		ConsumeWait:       f.histograms("consume_wait_seconds", "Time of a consume by what it ended with: records, empty, error.", "topic", "outcome"),
		ConsumeEmpty:      f.one("consume_empty_total", "Consumes that were answered without a record."),
		ConsumerDropped:   f.one("consumer_dropped_messages", "Records that retention took before they were acked."),
		ProduceRejections: f.counter("produce_rejections_total", "Produces refused.", "topic", "reason"),
		HTTPRequests:      f.counter("http_requests_total", "Requests answered.", "route", "method", "status"),
		HTTPSeconds:       f.histograms("http_request_duration_seconds", "Time of a request.", "route", "method"),
		Errors:            f.counter("errors_total", "Errors that were neither answered nor retried.", "component", "kind"),
		BudgetRefused:     f.one("http_batch_body_budget_rejections_total", "Batch produces refused because too many large bodies were being read."),
		FsyncSeconds:      f.histograms("storage_fsync_duration_seconds", "Time of one fsync of a partition's log.", "topic", "partition"),
		RaftState:         f.loose("raft_state", "1 for the state of this node's Raft.", "state"),
		RaftHasLeader:     f.loose("raft_has_leader", "1 while a leader is known."),
		ConsumerLag:       f.loose("consumer_lag_messages", "Records of the partition above its consumers' frontier.", "topic", "partition"),
		InFlight:          f.loose("inflight_size", "Records leased to consumers on this node."),
		AckedAhead:        f.loose("acked_ahead_size", "Acks above the frontiers on this node."),
		OldestUnconsumed:  f.loose("oldest_unconsumed_message_age_seconds", "Age of the oldest record above a frontier on this node, 0 when there is none."),
		MovesBlocked:      f.loose("moves_blocked", "Moves of the cluster that cannot go on, by what they wait for.", "reason"),

		DecommissionBlocked: f.loose("decommission_blocked", "1 for what keeps a member's decommission from its end, on the leader.", "node", "reason"),
	}
}

// GaugeFunc adds a gauge that is read when it is scraped, such as ingress_dispatch_backlog_records.
func (s *Set) GaugeFunc(name, help string, read func() float64) {
	s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "narad", Name: name, Help: help}, read))
}

// CounterFunc adds a counter that is read when it is scraped, such as remote_seals_total.
func (s *Set) CounterFunc(name, help string, read func() float64) {
	s.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "narad", Name: name, Help: help}, read))
}

// Collect adds a collector of its owner's, for series whose labels come and go.
func (s *Set) Collect(c prometheus.Collector) { s.registry.MustRegister(c) }

// Describe names every series that is registered, with its labels, whether or not it has a value yet.
func (s *Set) Describe(ch chan<- *prometheus.Desc) { s.registry.Describe(ch) }

// Handler serves the text format.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

// factory makes registered vectors under the prefix narad_.
type factory struct{ registry *prometheus.Registry }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "narad", Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "narad", Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

// loose makes a gauge that its owner registers through Collect, because its label sets come and go with cursors.
func (f factory) loose(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "narad", Name: name, Help: help}, labels)
}

func (f factory) histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "narad", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10),
	}, labels)
	f.registry.MustRegister(v)
	return v
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "narad", Name: name, Help: help, Buckets: buckets})
	f.registry.MustRegister(h)
	return h
}

func (f factory) one(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "narad", Name: name, Help: help})
	f.registry.MustRegister(c)
	return c
}

func (f factory) oneGauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "narad", Name: name, Help: help})
	f.registry.MustRegister(g)
	return g
}
