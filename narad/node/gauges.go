package node

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"narad.example/narad/cluster"
	"narad.example/narad/partition"
)

// brokerGauges reads Raft, partitions and consumer state at each scrape: a topic that is deleted has no series.
type brokerGauges struct {
	n     *Node
	moves *cluster.Moves

	mu      sync.Mutex // one scrape at a time fills the gauges; guards waiting too
	waiting map[place]oldest
}

// place is a partition of a topic incarnation.
type place struct {
	topicID   string
	partition int
}

// oldest is the record at a partition's frontier and when it was committed, kept from scrape to scrape so that no scrape wakes a
// partition at rest.
type oldest struct {
	offset, commitMS int64
}

// Describe names the gauges.
func (g *brokerGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range g.vectors() {
		v.Describe(ch)
	}
}

func (g *brokerGauges) vectors() []*prometheus.GaugeVec {
	b := &g.n.metrics.Broker
	return []*prometheus.GaugeVec{b.RaftState, b.RaftHasLeader, b.ConsumerLag, b.InFlight, b.AckedAhead, b.OldestUnconsumed, b.MovesBlocked, b.DecommissionBlocked}
}

// readings is what one scrape found.
type readings struct {
	state         string
	leader        float64
	leased, ahead int
	lags          []lagReading
	blocked       map[string]int
	waiting       map[place]oldest
}

type lagReading struct {
	topic     string
	partition int
	lag       int64
}

// read opens partitions that are not open yet, which may wait for the disk, so that it holds no lock. known is what the scrape before
// found at the frontiers.
func (g *brokerGauges) read(known map[place]oldest) readings {
	r := readings{state: g.n.meta.RaftState(), blocked: map[string]int{}, waiting: map[place]oldest{}}
	moves, _ := g.moves.Moves(context.Background()) // it fails never: it reads the replica
	for _, m := range moves.Moves {
		if m.Blocked != "" {
			r.blocked[m.Blocked]++
		}
	}
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
			f := g.n.queues.Frontier(t.ID, p)
			if f < 0 {
				continue
			}
			r.lags = append(r.lags, lagReading{t.Name, p, max(0, part.HighWatermark()-f)})
			at := place{t.ID, p}
			if o, ok := oldestFrom(part, f, known[at]); ok {
				r.waiting[at] = o
			}
		}
	}
	return r
}

// oldestFrom finds the oldest record at or above a frontier. known is what was found before; ok is false when there is none, or it does
// not read, which whoever consumes it reports.
func oldestFrom(part *partition.Partition, frontier int64, known oldest) (o oldest, ok bool) {
	at := max(frontier, part.Oldest())
	if at >= part.HighWatermark() {
		return oldest{}, false
	}
	if known.commitMS > 0 && known.offset == at {
		return known, true
	}
	ms, err := part.CommitTime(at)
	return oldest{at, ms}, err == nil
}

// age is how long the oldest of them has waited, in seconds, never negative (DEC-15).
func (r *readings) age(now time.Time) float64 {
	age := 0.0
	for _, o := range r.waiting {
		age = max(age, now.Sub(time.UnixMilli(o.commitMS)).Seconds())
	}
	return age
}

// Collect fills the gauges and hands them on.
func (g *brokerGauges) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	known := g.waiting
	g.mu.Unlock()
	r := g.read(known)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = r.waiting
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
	b.OldestUnconsumed.WithLabelValues().Set(r.age(g.n.wall()))
	for _, reason := range cluster.BlockedReasons() {
		b.MovesBlocked.WithLabelValues(reason).Set(float64(r.blocked[reason]))
	}
	for _, m := range g.n.meta.Members() {
		for _, why := range g.n.members.Blocked(m.ID) {
			b.DecommissionBlocked.WithLabelValues(m.ID, why.Code).Set(1)
		}
	}
	for _, v := range g.vectors() {
		v.Collect(ch)
	}
}
