package node

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"narad.example/narad/fanout"
	"narad.example/narad/meta"
	"narad.example/narad/metrics"
	"narad.example/narad/wire"
)

// The observers below join the rooms' own counting interfaces with the series of package metrics.

type ingressObserver struct{ m *metrics.Broker }

func (o ingressObserver) Accepted(_ int, payloadBytes int64) {
	o.m.BytesProduced.Add(float64(payloadBytes))
}
func (o ingressObserver) Rejected(topic, reason string) {
	o.m.ProduceRejections.WithLabelValues(topic, reason).Inc()
}
func (o ingressObserver) Committed(topic string, partition, records int) {
	o.m.Produced.WithLabelValues(topic, strconv.Itoa(partition)).Add(float64(records))
}
func (o ingressObserver) Dropped(_ string, records int) {
	o.m.Errors.WithLabelValues("ingress", "topic_gone").Add(float64(records))
}
func (o ingressObserver) Failed() { o.m.Errors.WithLabelValues("ingress", "wal").Inc() }

type queueObserver struct{ m *metrics.Broker }

func (o queueObserver) Consumed(_ string, _, records, bytes int) {
	o.m.Consumed.Add(float64(records))
	o.m.BytesConsumed.Add(float64(bytes))
}
func (o queueObserver) Extended(string) { o.m.Extended.Inc() }
func (o queueObserver) Nacked(string)   { o.m.Nacked.Inc() }
func (o queueObserver) Dropped(_ string, _ int, records int64) {
	o.m.ConsumerDropped.Add(float64(records))
}
func (o queueObserver) Failed(string, int) { o.m.Errors.WithLabelValues("queue", "frontier").Inc() }

type fanoutObserver struct{ m *metrics.Fanout }

func (o fanoutObserver) Shipped(parent, child string, _, records int, bytes int64) {
	o.m.Committed.WithLabelValues(parent, child).Add(float64(records))
	o.m.BatchRecords.Observe(float64(records))
	o.m.BatchBytes.Observe(float64(bytes))
}
func (o fanoutObserver) Dropped(parent, child string, _ int, records int64) {
	o.m.Dropped.WithLabelValues(parent, child).Add(float64(records))
}
func (o fanoutObserver) Reread(parent, child string, _ int) {
	o.m.Rereads.WithLabelValues(parent, child).Inc()
}

type senderObserver struct {
	m      *metrics.Remote
	link   *metrics.Fanout
	health *remoteHealth
}

func (o senderObserver) Request(remote, code string, took time.Duration, bodyBytes, wireBytes int) {
	o.health.answered(remote, code)
	o.m.Requests.WithLabelValues(remote, code).Inc()
	o.m.RequestSeconds.WithLabelValues(remote).Observe(took.Seconds())
	o.m.BodyBytes.WithLabelValues(remote).Add(float64(bodyBytes))
	o.m.WireBytes.WithLabelValues(remote).Add(float64(wireBytes))
}
func (o senderObserver) Error(remote, class string) {
	o.health.failed(remote, class)
	o.m.Errors.WithLabelValues(remote, class).Inc()
}
func (o senderObserver) Resent(remote string, records int) {
	o.m.Resent.WithLabelValues(remote).Add(float64(records))
}
func (o senderObserver) GateBackoff(remote string, wait time.Duration) {
	o.m.GateBackoff.WithLabelValues(remote).Set(wait.Seconds())
}
func (o senderObserver) SlotWait(remote string, wait time.Duration) {
	o.m.InflightWait.WithLabelValues(remote).Observe(wait.Seconds())
}
func (o senderObserver) ChunkLimit(remote string, bytes int) {
	o.m.ChunkLimit.WithLabelValues(remote).Set(float64(bytes))
}

// State is read from the runner when it is scraped.
func (senderObserver) State(string, string, int, wire.LinkState) {}

func (o senderObserver) Skipped(parent, child string, records int) {
	o.link.Skipped.WithLabelValues(parent, child).Add(float64(records))
}
func (o senderObserver) CheckFailed(parent, child string) {
	o.link.CheckFailures.WithLabelValues(parent, child).Inc()
}
func (o senderObserver) Held(bytes int64) { o.m.HeldBytes.Set(float64(bytes)) }

type vaultObserver struct {
	m      *metrics.Remote
	health *remoteHealth
}

func (o vaultObserver) Decrypted(remote string) {
	o.m.CredentialDecrypts.WithLabelValues(remote).Inc()
}
func (o vaultObserver) Credential(remote, state string) {
	o.m.CredentialState.DeletePartialMatch(prometheus.Labels{"remote": remote})
	o.m.CredentialState.WithLabelValues(remote, state).Set(1)
}
func (o vaultObserver) Dialed(remote string, took time.Duration, refused string) {
	if refused != "" {
		o.m.DestinationRefused.WithLabelValues(remote, refused).Inc()
		return
	}
	o.m.RTT.WithLabelValues(remote).Set(took.Seconds())
}
func (o vaultObserver) Forgotten(remote string) {
	o.health.forget(remote)
	o.m.RTT.DeleteLabelValues(remote)
	o.m.CredentialState.DeletePartialMatch(prometheus.Labels{"remote": remote})
	o.m.GateBackoff.DeleteLabelValues(remote)
	o.m.ChunkLimit.DeleteLabelValues(remote)
}

// cursorGauges reads the cursors at each scrape: a cursor that stopped has no series (CUR-13).
type cursorGauges struct {
	set    *metrics.Fanout
	runner *fanout.Runner
	state  *meta.State
	now    func() time.Time

	mu sync.Mutex // one scrape at a time fills the gauges
}

// Describe names the gauges.
func (g *cursorGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range g.vectors() {
		v.Describe(ch)
	}
}

func (g *cursorGauges) vectors() []*prometheus.GaugeVec {
	s := g.set
	return []*prometheus.GaugeVec{s.LagMessages, s.DueLagSeconds, s.State, s.RemoteLagSeconds, s.RetentionHeadroom, s.LastSuccess}
}

// Collect fills the gauges from the running cursors and hands them on.
func (g *cursorGauges) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.vectors() {
		v.Reset()
	}
	now := g.now()
	newest := map[[2]string]int64{}
	for _, c := range g.runner.All() {
		g.fill(&c, now, newest)
	}
	for link, ms := range newest {
		g.set.LastSuccess.WithLabelValues(link[0], link[1]).Set(float64(ms) / 1000)
	}
	for _, v := range g.vectors() {
		v.Collect(ch)
	}
}

func (g *cursorGauges) fill(c *fanout.CursorStats, now time.Time, newest map[[2]string]int64) {
	p := strconv.Itoa(c.Partition)
	g.set.LagMessages.WithLabelValues(c.Parent, c.Child, p).Set(float64(c.Lag()))
	g.set.DueLagSeconds.WithLabelValues(c.Parent, c.Child, p).Set(c.DueLagSeconds(now))
	if c.Remote == "" {
		return
	}
	g.set.State.WithLabelValues(c.Parent, c.Child, p, string(c.State)).Set(1)
	g.set.RemoteLagSeconds.WithLabelValues(c.Parent, c.Child, p).Set(c.LagSeconds(now))
	if t, ok := g.state.TopicByID(c.ParentID); ok && t.RetentionMS > 0 {
		g.set.RetentionHeadroom.WithLabelValues(c.Parent, c.Child, p).Set(c.Headroom(now, t.RetentionMS))
	}
	link := [2]string{c.Parent, c.Child}
	if c.LastSuccess > newest[link] {
		newest[link] = c.LastSuccess
	}
}
