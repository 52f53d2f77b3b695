package node

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// brokerGauges reads Raft, partitions and consumer state at each scrape: a topic that is deleted has no series.
type brokerGauges struct {
	n  *Node
	mu sync.Mutex // one scrape at a time fills the gauges
}

// Describe names the gauges.
func (g *brokerGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range g.vectors() {
		v.Describe(ch)
	}
}

func (g *brokerGauges) vectors() []*prometheus.GaugeVec {
	b := &g.n.metrics.Broker
	return []*prometheus.GaugeVec{b.RaftState, b.RaftHasLeader, b.ConsumerLag, b.InFlight, b.AckedAhead}
}

// readings is what one scrape found.
type readings struct {
	state         string
	leader        float64
	leased, ahead int
	lags          []lagReading
}

type lagReading struct {
	topic     string
	partition int
	lag       int64
}

// read opens partitions that are not open yet, which may wait for the disk, so that it holds no lock.
func (g *brokerGauges) read() readings {
	r := readings{state: g.n.meta.RaftState()}
	if _, _, ok := g.n.meta.Leader(); ok {
		r.leader = 1
	}
	for _, t := range g.n.meta.Topics() {
		for _, s := range g.n.queues.Stats(t.ID) {
			r.leased += s.InFlight
			r.ahead += s.AckedAhead
		}
		for _, p := range g.n.owned.mine(&t) {
			part, err := g.n.owned.open(&t, p)
			if err != nil {
				continue // it is being deleted, or does not open, which whoever uses it reports
			}
			if f := g.n.queues.Frontier(t.ID, p); f >= 0 {
				r.lags = append(r.lags, lagReading{t.Name, p, max(0, part.HighWatermark()-f)})
			}
		}
	}
	return r
}

// Collect fills the gauges and hands them on.
func (g *brokerGauges) Collect(ch chan<- prometheus.Metric) {
	r := g.read()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.vectors() {
		v.Reset()
	}
	b := &g.n.metrics.Broker
	b.RaftState.WithLabelValues(r.state).Set(1)
	b.RaftHasLeader.WithLabelValues().Set(r.leader)
	for _, l := range r.lags {
		b.ConsumerLag.WithLabelValues(l.topic, strconv.Itoa(l.partition)).Set(float64(l.lag))
	}
	b.InFlight.WithLabelValues().Set(float64(r.leased))
	b.AckedAhead.WithLabelValues().Set(float64(r.ahead))
	for _, v := range g.vectors() {
		v.Collect(ch)
	}
}
