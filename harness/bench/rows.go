package bench

import (
	"context"
	"slices"
)

// Names of rows that are no PRF row of their own.
const (
	rowProduceCPU = "PRF-10-cpu"
	rowIdle       = "idle-rss"
	rowAllNode    = "PRF-15-node"
)

// goal is one row of the table: what is measured, in which unit, and which ratio to the reference is wanted.
type goal struct {
	id, what, against, unit string
	reach                   float64 // 0 when nothing is promised
	atMost                  bool    // reach is an upper bound
	fixed                   float64 // the reference, when it is a number and not a measurement
}

var goals = []goal{
	{id: "PRF-01", what: "drain, 1 lane", against: "floor, 1 lane", unit: "records/s", reach: 0.55},
	{id: "PRF-02", what: "drain, 4 lanes", against: "floor, 4 lanes", unit: "records/s", reach: 0.35},
	{id: "PRF-03", what: "drain at 50 ms, 8 lanes x 3 partitions", against: "floor at 50 ms, 24 lanes", unit: "records/s", reach: 0.9},
	{id: "PRF-06", what: "CPU per copied record, 1 lane", against: "floor, 1 lane", unit: "us", reach: 2.5, atMost: true},
	{id: "PRF-07", what: "drain with zstd, 1 lane", against: "floor with zstd", unit: "records/s", reach: 0.7},
	{id: "PRF-08", what: "drain of base64 payloads", against: "of JSON payloads", unit: "records/s", reach: 0.7},
	{id: "PRF-09", what: "batch produce", against: "single produce", unit: "records/s", reach: 6},
	{id: "PRF-10", what: "single produce, 64 clients", against: "20,000 a second", unit: "records/s", reach: 1, fixed: 20_000},
	{id: rowProduceCPU, what: "CPU per single produce", against: "60 us", unit: "us", reach: 1, atMost: true, fixed: 60},
	{id: "PRF-11", what: "single produce with a remote child", against: "without", unit: "records/s", reach: 0.85},
	{id: "PRF-12", what: "memory that 16 links to a dead target add", against: "held budget + 64 MiB", unit: "MiB", reach: 1, atMost: true, fixed: heldBudget + 64},
	{id: "PRF-13", what: "CPU of 1,008 caught-up cursors", against: "2% of a core", unit: "%", reach: 1, atMost: true, fixed: 2},
	{id: "PRF-14", what: "a virtual day of two clusters of three nodes", against: "5 real minutes", unit: "min", reach: 1, atMost: true, fixed: 5},
	{id: rowAllNode, what: "allocations of the whole source per copied record", unit: "objects"},
	{id: "PRF-16", what: "lag at 2,000 records/s, p99", against: "50 ms", unit: "ms", reach: 1, atMost: true, fixed: 50},
	{id: "PRF-17", what: "topic create to first record", against: "0.25 s", unit: "s", reach: 1, atMost: true, fixed: 0.25},
	{id: rowThreeDrain, what: "drain of three nodes, 3 partitions", against: "of one node", unit: "records/s", reach: 0.8},
	{id: rowOther, what: "single produce through another node", against: "through the owner", unit: "records/s", reach: 0.7},
	{id: rowLeader, what: "metadata writes after the leader's death", against: "3 s", unit: "s", reach: 1, atMost: true, fixed: 3},
	{id: rowMove, what: "partitions of a member that leaves", against: "a copy of its files", unit: "bytes/s", reach: 0.5},
	{id: rowMoveWire, what: "the same", against: "its files through one TLS connection", unit: "bytes/s", reach: 0.5},
	{id: rowIdle, what: "memory of an idle node", unit: "MiB"},
}

// sample is one round's figure of a row and of its reference.
type sample struct{ ours, reference float64 }

// measurement gives the samples of its rows.
type measurement struct {
	rows []string
	once bool // a long one: in the first round only
	run  func(ctx context.Context, s *stand) (map[string]sample, error)
}

var measurements = []measurement{
	{rows: []string{"PRF-01", "PRF-06", rowAllNode}, run: measureDrain},
	{rows: []string{"PRF-02"}, run: measureRate("PRF-02",
		func(s *stand) copying { return copying{of: s.plain(), lanes: 4, remote: remoteName} }, plainFloor(4))},
	{rows: []string{"PRF-03"}, run: measureRate("PRF-03", (*stand).farCopying, FloorKind{Lanes: 24, Records: 500, far: true})},
	{rows: []string{"PRF-07"}, run: measureRate("PRF-07",
		func(s *stand) copying { return copying{of: s.plain(), lanes: 1, remote: zstdRemote} },
		FloorKind{Lanes: 1, Records: floorRecords, Zstd: true})},
	{rows: []string{"PRF-08"}, run: measureBinary},
	{rows: []string{"PRF-09", "PRF-10", rowProduceCPU}, run: measureProduce},
	{rows: []string{"PRF-11"}, run: measureFollowed},
	{rows: []string{"PRF-12"}, once: true, run: single("PRF-12", (*stand).outage)},
	{rows: []string{"PRF-13"}, once: true, run: single("PRF-13", (*stand).caughtUp)},
	{rows: []string{"PRF-16"}, run: single("PRF-16", (*stand).lag)},
	{rows: []string{"PRF-17"}, run: single("PRF-17", (*stand).first)},
	{rows: []string{rowThreeDrain}, run: measureThree},
	{rows: []string{rowOther}, run: measureOther},
	{rows: []string{rowLeader}, run: single(rowLeader, (*stand).withoutLeader)},
	{rows: []string{rowMove, rowMoveWire}, run: measureMove},
	{rows: []string{"PRF-14"}, once: true, run: single("PRF-14", (*stand).day)},
	{rows: []string{rowIdle}, run: single(rowIdle, (*stand).idle)},
}

// single is a row whose reference is a number, or that has none.
func single(id string, of func(*stand, context.Context) (float64, error)) func(context.Context, *stand) (map[string]sample, error) {
	return func(ctx context.Context, s *stand) (map[string]sample, error) {
		v, err := of(s, ctx)
		return map[string]sample{id: {ours: v}}, err
	}
}

// wanted tells whether a measurement gives a row of only; no row named is all.
func (m *measurement) wanted(only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(m.rows, func(r string) bool { return slices.Contains(only, r) })
}

// both measures ours and the reference; who begins changes from round to round.
func (s *stand) both(ctx context.Context, ours, reference func(context.Context) (copied, error)) (a, b copied, err error) {
	if s.round%2 == 0 {
		if a, err = ours(ctx); err == nil {
			b, err = reference(ctx)
		}
		return a, b, err
	}
	if b, err = reference(ctx); err == nil {
		a, err = ours(ctx)
	}
	return a, b, err
}

// drains measures a drain beside a floor.
func (s *stand) drains(ctx context.Context, k copying, f FloorKind) (ours, floor copied, err error) {
	return s.both(ctx,
		func(ctx context.Context) (copied, error) { return s.drain(ctx, k) },
		func(ctx context.Context) (copied, error) { return s.floor(ctx, f) })
}

func measureDrain(ctx context.Context, s *stand) (map[string]sample, error) {
	ours, floor, err := s.drains(ctx, copying{of: s.plain(), lanes: 1, remote: remoteName}, plainFloor(1))
	return map[string]sample{
		"PRF-01": {ours.rate(), floor.rate()}, "PRF-06": {ours.micros(), floor.micros()},
		rowAllNode: {ours: ours.allocations / float64(max(1, ours.records))},
	}, err
}

func measureRate(id string, of func(*stand) copying, f FloorKind) func(context.Context, *stand) (map[string]sample, error) {
	return func(ctx context.Context, s *stand) (map[string]sample, error) {
		ours, floor, err := s.drains(ctx, of(s), f)
		return map[string]sample{id: {ours.rate(), floor.rate()}}, err
	}
}

func (s *stand) farCopying() copying {
	of := s.plain()
	of.partitions = 3
	return copying{of: of, lanes: 8, remote: farRemote}
}

func measureBinary(ctx context.Context, s *stand) (map[string]sample, error) {
	raw := copying{of: s.plain(), lanes: 1, remote: remoteName}
	coded := raw
	coded.of.binary = true
	ours, reference, err := s.both(ctx,
		func(ctx context.Context) (copied, error) { return s.drain(ctx, coded) },
		func(ctx context.Context) (copied, error) { return s.drain(ctx, raw) })
	return map[string]sample{"PRF-08": {ours.rate(), reference.rate()}}, err
}

func measureProduce(ctx context.Context, s *stand) (map[string]sample, error) {
	batch, single, err := s.both(ctx,
		func(ctx context.Context) (copied, error) { return s.produceAlone(ctx, s.batches) },
		func(ctx context.Context) (copied, error) { return s.produceAlone(ctx, s.single) })
	if err != nil {
		return nil, err
	}
	return map[string]sample{
		"PRF-09": {batch.rate(), single.rate()}, "PRF-10": {ours: single.rate()}, rowProduceCPU: {ours: single.micros()},
	}, nil
}

func measureFollowed(ctx context.Context, s *stand) (map[string]sample, error) {
	with, without, err := s.both(ctx, s.produceFollowed,
		func(ctx context.Context) (copied, error) { return s.produceAlone(ctx, s.single) })
	if err != nil {
		return nil, err
	}
	return map[string]sample{"PRF-11": {with.rate(), without.rate()}}, nil
}
