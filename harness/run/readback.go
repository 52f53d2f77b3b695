package run

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// readers bounds the replays that are on the way at once. In virtual time a request takes no time, and one reader that goes forward is
// cheapest for the nodes, which find the next record where the last one ended.
const (
	readers        = 12
	readersVirtual = 1
)

func (o *Options) readers() int {
	if o.Virtual {
		return readersVirtual
	}
	return readers
}

// span is a piece of a partition's log.
type span struct {
	partition int
	from, to  int64
}

const spanRecords = 500

// readTopic replays a whole topic, partition by partition, from its oldest record to the high watermark that it had when the reading began.
// The records come in the order of partition and offset. The nodes are asked in turn, one span each.
func readTopic(ctx context.Context, nodes []cluster.Node, topic string, readers int) ([]ledger.Stored, error) {
	detail, err := nodes[0].Client().Topic(ctx, topic, nil)
	if err != nil {
		return nil, err
	}
	if len(detail.PartitionStats) < detail.Partitions {
		return nil, fmt.Errorf("%s shows %d of %d partitions", topic, len(detail.PartitionStats), detail.Partitions)
	}
	var spans []span
	for _, st := range detail.PartitionStats {
		if st.Status != "" && st.Status != "ok" {
			return nil, fmt.Errorf("%s/%d: %s", topic, st.Index, st.Status)
		}
		for from := st.OldestOffset; from < st.HighWatermark; from += spanRecords {
			spans = append(spans, span{st.Index, from, min(from+spanRecords, st.HighWatermark)})
		}
	}
	found := make([][]ledger.Stored, len(spans))
	failed := make([]error, len(spans))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := make(chan int, len(spans))
	for i := range spans {
		work <- i
	}
	close(work)
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for i := range work {
				if found[i], failed[i] = readSpan(ctx, nodes[i%len(nodes)], topic, spans[i]); failed[i] != nil {
					cancel() // the topic cannot be read whole any more
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(found...), errors.Join(failed...)
}

func readSpan(ctx context.Context, n cluster.Node, topic string, s span) ([]ledger.Stored, error) {
	var out []ledger.Stored
	c := n.Client()
	for offset := s.from; offset < s.to; {
		m, err := c.Replay(ctx, topic, s.partition, offset)
		if err != nil {
			return out, fmt.Errorf("replay %d/%d: %w", s.partition, offset, err)
		}
		if m == nil {
			return out, fmt.Errorf("replay %d/%d: past the end, below the high watermark %d", s.partition, offset, s.to)
		}
		r, err := stored(topic, m)
		if err != nil {
			return out, fmt.Errorf("replay %d/%d: %w", s.partition, offset, err)
		}
		if r.Partition != s.partition || r.Offset < offset {
			return out, fmt.Errorf("replay %d/%d: answered %d/%d", s.partition, offset, r.Partition, r.Offset)
		}
		if r.Offset < s.to {
			out = append(out, r)
		}
		offset = r.Offset + 1
	}
	return out, nil
}

// stored brings one message into the ledger's form. It decodes by itself and not by the client's helpers, so that one mistake cannot hide on
// both sides.
func stored(topic string, m *wire.Message) (ledger.Stored, error) {
	payload, err := ledger.FromAnswer(m.Payload, m.PayloadEncoding)
	if err != nil {
		return ledger.Stored{}, err
	}
	key := []byte(m.Key)
	if m.KeyEncoding != "" {
		if key, err = base64.StdEncoding.DecodeString(m.Key); err != nil {
			return ledger.Stored{}, fmt.Errorf("key: %w", err)
		}
	}
	return ledger.Stored{
		Topic: topic, Partition: m.Partition, Offset: m.Offset, ID: ledger.IDOf(key, payload), Key: ledger.KeyText(key),
		Payload: ledger.Hash(payload), TimestampS: m.Timestamp,
	}, nil
}

// readBack replays the parents, and the target's topics where the target is real, and writes both files.
func (p *play) readBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var parents []string
	for name := range p.s.Topics {
		parents = append(parents, name)
	}
	slices.Sort(parents)
	read := p.readAll(ctx, p.sources(), parents, ledger.ParentName)
	p.change(func(f *ledger.Facts) { f.Parents = read })
	if p.s.Target.Fake != nil {
		return
	}
	var targets []string
	for _, t := range targetTopics(p.s) {
		targets = append(targets, t.name)
	}
	read = p.readAll(ctx, p.rig.Nodes(cluster.Target), targets, ledger.TargetName)
	p.change(func(f *ledger.Facts) { f.Targets = read })
}

func (p *play) readAll(ctx context.Context, nodes []cluster.Node, topics []string, file string) (whole []string) {
	var all []ledger.Stored
	for _, t := range topics {
		records, err := readTopic(ctx, nodes, t, p.o.readers())
		if err != nil {
			p.trouble("reading %s back: %s", t, firstWords(err.Error()))
		} else {
			whole = append(whole, t)
		}
		all = append(all, records...)
	}
	if file == ledger.ParentName {
		all = p.withKept(all)
	}
	if err := ledger.Write(p.path(file), all); err != nil {
		p.trouble("%v", err)
	}
	return whole
}

// keepParent reads a parent back during the run, for records that retention will have taken when it ends (harness.md, Truth).
func (p *play) keepParent(ctx context.Context, parent string) {
	records, err := readTopic(ctx, p.sources(), parent, p.o.readers())
	if err != nil {
		p.trouble("reading %s back on the way: %s", parent, firstWords(err.Error()))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, records...)
}

// withKept adds what was read on the way and is not in the log any more, in the order of topic, partition and offset.
func (p *play) withKept(all []ledger.Stored) []ledger.Stored {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) == 0 {
		return all
	}
	all = append(all, p.kept...)
	slices.SortStableFunc(all, func(a, b ledger.Stored) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return slices.CompactFunc(all, func(a, b ledger.Stored) bool {
		return a.Topic == b.Topic && a.Partition == b.Partition && a.Offset == b.Offset && a.ID == b.ID
	})
}
