package workload

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/harness/ledger"
)

// Load is one stream of produces. Percentages add up to 100 with the rest binary.
type Load struct {
	Name      string // names its random source; unique in a run
	Topic     string
	At        time.Duration
	Rate      int           // records per second
	Every     time.Duration // between two requests, when Rate is 0; as fast as the nodes answer when both are
	For       time.Duration
	Count     int // 0 runs for For
	Keys      int
	NastyKeys bool
	JSON      int
	Text      int
	MinSize   int
	MaxSize   int
	Batch     int
}

// Answer is what came back of one produce.
type Answer struct {
	Status    int    // 0 when no answer came
	Text      string // the error's text of a refusal
	RequestID string
	Problem   string // the class of a transport failure
}

// Producer is one node of the source.
type Producer interface {
	Name() string
	// Produce sends one record on the single route, Batch a body that AppendBatch made. They return when the answer is there or
	// the context ended.
	Produce(ctx context.Context, topic string, r Record) Answer
	Batch(ctx context.Context, topic string, body []byte) Answer
}

// Options of Run.
type Options struct {
	Seed    uint64
	Loads   []Load
	Nodes   []Producer                   // asked in turn
	Now     func() int64                 // milliseconds since the run's start
	Record  func(ledger.Operation) error // called once for each record, by several goroutines
	Timeout time.Duration                // of one request, 10 s when 0
	Owes    func(end time.Duration) bool // asked when a load's For is over, at its end since Run: while it says yes, the load goes on at its rate; nil never does
}

// workers bounds the requests of one load that are on the way at once.
const workers = 6

// Run makes all loads and returns when the last one has ended or ctx did. Its error is that of Record: what nodes answer is no error.
func Run(ctx context.Context, o Options) error {
	if len(o.Nodes) == 0 {
		return fmt.Errorf("workload: no node to produce to")
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	var wg sync.WaitGroup
	for n := range o.Loads {
		r := &runner{o: &o, load: &o.Loads[n], number: n + 1, start: start.Add(o.Loads[n].At), fail: cancel}
		for range workers {
			wg.Go(func() { r.work(ctx) })
		}
	}
	wg.Wait()
	var lost *unwritten
	if errors.As(context.Cause(ctx), &lost) {
		return fmt.Errorf("workload: %w", lost.err)
	}
	return nil
}

// unwritten is the cause with which a ledger that cannot be written ends the load.
type unwritten struct{ err error }

func (u *unwritten) Error() string { return u.err.Error() }

// runner is one load in work. Its workers take turns: a turn is one request.
type runner struct {
	o      *Options
	load   *Load
	number int
	start  time.Time
	fail   context.CancelCauseFunc
	turn   atomic.Int64
}

func (r *runner) work(ctx context.Context) {
	for ctx.Err() == nil {
		turn := int(r.turn.Add(1) - 1)
		first := turn * r.load.Batch
		if r.load.Count > 0 && first >= r.load.Count {
			return
		}
		due := r.start
		if r.load.Rate > 0 {
			due = due.Add(time.Duration(first) * time.Second / time.Duration(r.load.Rate))
		} else {
			due = due.Add(time.Duration(turn) * r.load.Every)
		}
		over := func(at time.Time) bool {
			return r.load.For > 0 && at.Sub(r.start) >= r.load.For && (r.o.Owes == nil || !r.o.Owes(r.load.At+r.load.For))
		}
		if over(due) || !sleep(ctx, time.Until(due)) || over(time.Now()) {
			return
		}
		r.send(ctx, turn, first)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *runner) send(ctx context.Context, turn, first int) {
	n := r.load.Batch
	if r.load.Count > 0 {
		n = min(n, r.load.Count-first)
	}
	records := make([]Record, 0, n)
	for i := range n {
		records = append(records, r.load.Make(r.o.Seed, r.number, first+i))
	}
	node := r.o.Nodes[turn%len(r.o.Nodes)]
	at := r.o.Now()
	limited, cancel := context.WithTimeout(ctx, r.o.Timeout)
	var a Answer
	if r.load.Batch > 1 {
		a = node.Batch(limited, r.load.Topic, AppendBatch(nil, records))
	} else {
		a = node.Produce(limited, r.load.Topic, records[0])
	}
	cancel()
	done := r.o.Now()
	for _, rec := range records {
		op := operation(rec, a)
		op.At, op.Done, op.Node, op.Topic, op.Batch = at, done, node.Name(), r.load.Topic, r.load.Batch > 1
		if err := r.o.Record(op); err != nil {
			r.fail(&unwritten{err})
			return
		}
	}
}

func operation(rec Record, a Answer) ledger.Operation {
	op := ledger.Operation{
		Kind: ledger.KindProduce, ID: rec.ID, Key: base64.StdEncoding.EncodeToString(rec.Key), Payload: ledger.Hash(rec.Payload), Shape: rec.Shape,
		Bytes: len(rec.Payload), Outcome: Outcome(a), Status: a.Status, RequestID: a.RequestID, Problem: a.Problem,
	}
	if seen := ledger.Hash(ledger.Visible(rec.Payload)); seen != op.Payload {
		op.Seen = seen
	}
	return op
}

// storedNothing are the texts of a 503 that promises that nothing was stored (api.md, What clients lean on).
var storedNothing = []string{"being decommissioned and takes no new produce", "schema validation slot"}

// Outcome reads an answer to a produce: 202 is acknowledged; a 4xx, and a 503 that says so, stored nothing; everything else may have been
// stored.
func Outcome(a Answer) string {
	switch {
	case a.Status == 202:
		return ledger.Acknowledged
	case a.Status >= 400 && a.Status < 500 && a.Status != 408:
		return ledger.Refused
	case a.Status == 503:
		for _, text := range storedNothing {
			if strings.Contains(a.Text, text) {
				return ledger.Refused
			}
		}
	}
	return ledger.Unknown
}
