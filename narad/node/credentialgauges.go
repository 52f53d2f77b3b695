package node

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"narad.example/narad/meta"
	"narad.example/narad/metrics"
	"narad.example/narad/remote/vault"
	"narad.example/narad/wire"
)

// credentialGauges reads the remotes at each scrape: one that is deleted has no series. Keys are current and previous, whatever
// their versions (metrics.md).
type credentialGauges struct {
	set   *metrics.Remote
	state *meta.State
	keys  *vault.Keys
	now   func() time.Time

	mu sync.Mutex // one scrape at a time fills the gauges
}

// Describe names the gauges.
func (g *credentialGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range g.vectors() {
		v.Describe(ch)
	}
}

func (g *credentialGauges) vectors() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{g.set.CredentialAge, g.set.KeyCurrent, g.set.KeySeals, g.set.KeyAge}
}

// Collect fills the gauges and hands them on.
func (g *credentialGauges) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.vectors() {
		v.Reset()
	}
	salt, now := g.state.Salt(), g.now()
	current := g.keys.Version(salt)
	oldest := map[string]float64{}
	for _, r := range g.state.Remotes() {
		key, isCurrent := "previous", 0.0
		if r.KeyVersion == current {
			key, isCurrent = "current", 1
		}
		age := max(0, now.Sub(time.UnixMilli(r.SetAtMS)).Seconds())
		oldest[key] = max(oldest[key], age)
		g.set.CredentialAge.WithLabelValues(r.Name).Set(age)
		g.set.KeyCurrent.WithLabelValues(r.Name).Set(isCurrent)
	}
	for key, age := range oldest {
		g.set.KeyAge.WithLabelValues(key).Set(age)
	}
	if current != "" {
		g.set.KeySeals.WithLabelValues("current").Set(float64(g.keys.Seals(salt)))
	}
	for _, v := range g.vectors() {
		v.Collect(ch)
	}
}

// timedConsumer counts how long consumes wait and with what they end.
type timedConsumer struct {
	*consumer
	m *metrics.Broker
}

// Consume is the consumer's.
func (q timedConsumer) Consume(ctx context.Context, topic string, partition *int, limit int, wait time.Duration) ([]wire.Delivery, error) {
	begun := time.Now()
	out, err := q.consumer.Consume(ctx, topic, partition, limit, wait)
	outcome := "records"
	switch {
	case err != nil:
		outcome = "error"
	case len(out) == 0:
		outcome = "empty"
		q.m.ConsumeEmpty.Inc()
	}
	q.m.ConsumeWait.WithLabelValues(topic, outcome).Observe(time.Since(begun).Seconds())
	return out, err
}
