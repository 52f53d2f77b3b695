package move

import (
	"context"
	"time"

	"narad.example/narad/partition"
)

const (
	inFlight  = 2                         // questions at once, so that the wire does not rest while the source reads, or this node writes
	roomBytes = readBytes + readBytes/128 // memory for an answer, its head included
)

// copy reads from the source until it has no more, and returns how many records came. While one run of records is imported the next ones are on
// their way.
func (in *incoming) copy(ctx context.Context) (records int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{in: in, next: in.part.HighWatermark()}
	defer func() {
		cancel()
		r.end()
	}()
	for {
		q := r.take(ctx)
		switch {
		case problemClass(q.err) == classTrimmed:
			return records, errScratch
		case q.err != nil:
			return records, q.err
		}
		if err = in.part.Import(ctx, &q.run); err != nil {
			return records, in.spoilt(err)
		}
		r.free(q)
		records += q.run.Records
		if high := in.part.HighWatermark(); high > in.best {
			in.best, in.stuck = high, time.Time{}
		}
		if q.run.Records == 0 || q.run.Next() >= q.High {
			return records, nil
		}
	}
}

// reader asks the source for one run of records after the other. Where a run ends is known before it has come, since a question says how many records it wants:
// as many as surely fit into one answer, by the size of those that came last. What is missing of a run all the same is asked for on its own.
type reader struct {
	in   *incoming
	open []*question // in the order of their offsets, without a gap
	next int64       // the first offset that nobody has asked for
	most int         // records of a question; 0 while their size is unknown
	high int64       // of the source, as far as it is known
}

// question is one call of MoveRead, and its answer once done is closed.
type question struct {
	from    int64
	records int // wanted; 0 is as many as the source gives
	room    *[]byte
	done    chan struct{}

	bounds
	run partition.Stored
	err error
}

// end waits for the questions that are left; their context has ended.
func (r *reader) end() {
	for _, q := range r.open {
		<-q.done
		r.free(q)
	}
}

// take returns the next run. Others are on their way meanwhile.
func (r *reader) take(ctx context.Context) *question {
	r.fill(ctx)
	q := r.open[0]
	<-q.done
	r.open = r.open[1:]
	if q.err != nil {
		return q
	}
	r.high = q.High
	switch got := q.run.Records; {
	case q.records == 0:
		r.next = q.run.Next()
	case got > 0 && got < q.records && q.run.Next() < q.High: // a segment of the source's log ends here, or these records are larger than the last ones
		r.open = append([]*question{r.ask(ctx, q.run.Next(), q.records-got)}, r.open...)
	}
	if n := q.run.Records; n > 0 {
		r.most = min(readRecords, max(1, readBytes*7/8*n/len(q.run.Frames)))
	}
	r.fill(ctx)
	return q
}

// fill asks for what is there as far as offsets are known.
func (r *reader) fill(ctx context.Context) {
	for len(r.open) == 0 || len(r.open) < inFlight && r.most > 0 && r.next < r.high {
		r.open = append(r.open, r.ask(ctx, r.next, r.most))
		r.next += int64(r.most)
	}
}

// ask puts a question. Its goroutine ends with it, which the end of ctx hastens.
func (r *reader) ask(ctx context.Context, from int64, records int) *question {
	q := &question{from: from, records: records, done: make(chan struct{})}
	var room []byte
	if records > 0 {
		q.room, _ = r.in.m.rooms.Get().(*[]byte) // the pool holds nothing else
		room = *q.room
	}
	go func() {
		defer close(q.done)
		q.bounds, q.run, q.err = r.in.read(ctx, q.from, q.records, room)
	}()
	return q
}

// free gives the memory of an answer back.
func (r *reader) free(q *question) {
	if q.room != nil {
		r.in.m.rooms.Put(q.room)
	}
}
