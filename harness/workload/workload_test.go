package workload

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"narad.example/harness/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node answers in turn what it is told to, and keeps the records it got.
type node struct {
	name    string
	answers func(n int) (Answer, time.Duration)

	mu      sync.Mutex // guards what follows
	n       int
	batches [][]byte
	singles []Record
	times   []time.Time
}

func (f *node) Name() string { return f.name }

func (f *node) take() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	f.times = append(f.times, time.Now())
	return f.n
}

func (f *node) answer(ctx context.Context, n int) Answer {
	if f.answers == nil {
		return Answer{Status: 202}
	}
	a, d := f.answers(n)
	if !sleep(ctx, d) {
		return Answer{Problem: "timeout"}
	}
	return a
}

func (f *node) Produce(ctx context.Context, _ string, r Record) Answer {
	n := f.take()
	f.mu.Lock()
	f.singles = append(f.singles, r)
	f.mu.Unlock()
	return f.answer(ctx, n)
}

func (f *node) Batch(ctx context.Context, _ string, body []byte) Answer {
	n := f.take()
	f.mu.Lock()
	f.batches = append(f.batches, body)
	f.mu.Unlock()
	return f.answer(ctx, n)
}

type recorded struct {
	mu  sync.Mutex // guards ops
	ops []ledger.Operation
}

func (r *recorded) record(op ledger.Operation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
	return nil
}

func TestRateAndLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := &node{name: "source-1"}
		var rec recorded
		err := Run(t.Context(), Options{
			Seed: 1, Nodes: []Producer{n}, Now: func() int64 { return time.Since(start).Milliseconds() }, Record: rec.record,
			Loads: []Load{{Name: "a", Topic: "orders", Rate: 200, For: 5 * time.Second, Keys: 3, JSON: 100, MinSize: 200, MaxSize: 300, Batch: 20}},
		})
		require.NoError(t, err)
		require.Len(t, rec.ops, 1000)
		require.Equal(t, 4900*time.Millisecond, time.Since(start), "the last turn begins then")
		ids := map[string]bool{}
		for _, op := range rec.ops {
			require.Equal(t, ledger.Acknowledged, op.Outcome)
			require.False(t, ids[op.ID])
			ids[op.ID] = true
		}
	})
}

// covers: HAR-04
func TestARequestEverySoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var rec recorded
		err := Run(t.Context(), Options{
			Seed: 1, Nodes: []Producer{&node{name: "source-1"}}, Now: func() int64 { return 0 }, Record: rec.record,
			Loads: []Load{{Name: "a", Topic: "orders", Every: time.Minute, For: time.Hour, Keys: 3, JSON: 100, MinSize: 200, MaxSize: 300, Batch: 3}},
		})
		require.NoError(t, err)
		require.Len(t, rec.ops, 180)
		require.Equal(t, 59*time.Minute, time.Since(start), "the last turn begins then")
	})
}

// A load that owes something goes on at its rate, and no longer than it does.
func TestALoadThatOwesGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var rec recorded
		err := Run(t.Context(), Options{
			Seed: 1, Nodes: []Producer{&node{name: "source-1"}}, Now: func() int64 { return 0 }, Record: rec.record,
			Owes:  func(time.Duration) bool { return time.Since(start) < 8*time.Second },
			Loads: []Load{{Name: "a", Topic: "orders", Rate: 10, For: 5 * time.Second, Keys: 3, JSON: 100, MinSize: 200, MaxSize: 300, Batch: 1}},
		})
		require.NoError(t, err)
		require.Len(t, rec.ops, 80)
	})
}

// An unknown produce is never tried again: every ID goes out once, whatever was answered.
func TestNothingIsProducedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "source-1", answers: func(n int) (Answer, time.Duration) {
			switch n % 4 {
			case 0:
				return Answer{Problem: "reset"}, time.Millisecond
			case 1:
				return Answer{Status: 503, Text: "being decommissioned and takes no new produce"}, 0
			case 2:
				return Answer{Status: 202}, time.Hour // over the request's time
			}
			return Answer{Status: 202}, 0
		}}
		var rec recorded
		err := Run(t.Context(), Options{
			Seed: 1, Nodes: []Producer{n}, Now: func() int64 { return 0 }, Record: rec.record,
			Loads: []Load{{Name: "a", Topic: "orders", Count: 40, Keys: 2, JSON: 100, MinSize: 100, MaxSize: 100, Batch: 1}},
		})
		require.NoError(t, err)
		ids, outcomes := map[string]bool{}, map[string]int{}
		for _, r := range n.singles {
			require.False(t, ids[r.ID])
			ids[r.ID] = true
		}
		for _, op := range rec.ops {
			outcomes[op.Outcome]++
		}
		require.Equal(t, map[string]int{ledger.Acknowledged: 10, ledger.Refused: 10, ledger.Unknown: 20}, outcomes)
	})
}

func TestRunEndsWithItsContextAndWithTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{
			Seed: 1, Nodes: []Producer{&node{name: "a"}}, Now: func() int64 { return 0 },
			Loads: []Load{{Name: "a", Topic: "t", Rate: 1, For: time.Hour, JSON: 100, MinSize: 99, MaxSize: 99, Batch: 1}},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o.Record = func(ledger.Operation) error { return nil }
		require.NoError(t, Run(ctx, o))
		full := errors.New("disk full")
		o.Record = func(ledger.Operation) error { return full }
		require.ErrorIs(t, Run(t.Context(), o), full)
	})
	require.Error(t, Run(t.Context(), Options{}))
}

// The seed alone makes a record, and a name sets sources apart.
func TestRecordsFollowTheSeed(t *testing.T) {
	l := Load{Name: "a", Keys: 9, NastyKeys: true, JSON: 40, Text: 30, MinSize: 1, MaxSize: 4096}
	first := l.Make(7, 1, 5)
	_ = l.Make(7, 1, 6) // another one between changes nothing
	require.Equal(t, first, l.Make(7, 1, 5))
	require.NotEqual(t, l.Make(7, 1, 5).Payload, l.Make(8, 1, 5).Payload)
	other := l
	other.Name = "b"
	require.NotEqual(t, l.Make(7, 1, 5).Payload, other.Make(7, 1, 5).Payload)
	rolled := Source(3, "x").Uint64()
	require.Equal(t, rolled, Source(3, "x").Uint64())
	require.NotEqual(t, Source(3, "x").Uint64(), Source(3, "y").Uint64())
}

func TestRecordsAreWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Load{Name: "a", Keys: 9, NastyKeys: true, JSON: 40, Text: 30, MinSize: 1, MaxSize: rapid.SampledFrom([]int{1, 30, 64, 5000}).Draw(t, "max")}
		i := rapid.IntRange(0, 1<<30).Draw(t, "i")
		r := l.Make(rapid.Uint64().Draw(t, "seed"), 3, i)
		if ledger.IDOf(r.Key, r.Payload) != r.ID {
			require.Contains(t, string(r.Payload), token(r.ID))
		}
		require.NotEmpty(t, r.Payload)
		require.LessOrEqual(t, len(r.Payload), max(l.MaxSize, roomy+40))
		require.LessOrEqual(t, len(r.Key), maxKey)
		switch r.Shape {
		case ShapeJSON:
			require.True(t, json.Valid(r.Payload), "%q", r.Payload)
		case ShapeText:
			require.True(t, utf8.Valid(r.Payload) && !json.Valid(r.Payload), "%q", r.Payload)
		case ShapeBinary:
			require.False(t, utf8.Valid(r.Payload))
		}
	})
}

// Small payloads share keys, or no order could be proved with them, and each is found again by its key and what a reader sees of it.
func TestSmallRecordsShareKeysAndAreFound(t *testing.T) {
	l := Load{Name: "a", Keys: 9, NastyKeys: true, JSON: 40, Text: 30, MinSize: 1, MaxSize: 40}
	seen, keys := map[string]string{}, map[string]int{}
	shared := 0
	for i := range 5000 {
		r := l.Make(5, 2, i)
		name := string(r.Key) + " " + string(ledger.Visible(r.Payload))
		require.Empty(t, seen[name], "%q", name)
		seen[name] = r.ID
		if keys[string(r.Key)]++; keys[string(r.Key)] > 1 {
			shared++
		}
	}
	require.Greater(t, shared, 1500)
	require.Positive(t, keys["KEY-00001"])
	require.Positive(t, keys["key-00001"])
	require.Positive(t, keys["E\u0301"])
}

// A batch decodes, by the standard library alone, into the very bytes that were asked for.
func TestBatchKeepsBytes(t *testing.T) {
	l := Load{Name: "a", Keys: 9, NastyKeys: true, JSON: 60, Text: 20, MinSize: 1, MaxSize: 3000}
	var records []Record
	for i := range 400 {
		records = append(records, l.Make(11, 1, i))
	}
	var body struct {
		Messages []struct {
			Payload         json.RawMessage `json:"payload"`
			PayloadEncoding string          `json:"payload_encoding"`
			Key             string          `json:"key"`
			KeyEncoding     string          `json:"key_encoding"`
		} `json:"messages"`
	}
	dec := json.NewDecoder(bytes.NewReader(AppendBatch(nil, records)))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&body))
	require.Len(t, body.Messages, len(records))
	plain := 0
	for i, m := range body.Messages {
		payload := []byte(m.Payload)
		if m.PayloadEncoding == "base64" {
			var text string
			require.NoError(t, json.Unmarshal(m.Payload, &text))
			var err error
			payload, err = base64.StdEncoding.DecodeString(text)
			require.NoError(t, err)
		} else {
			plain++
		}
		require.Equal(t, records[i].Payload, payload)
		key, err := base64.StdEncoding.DecodeString(m.Key)
		require.NoError(t, err)
		require.Equal(t, string(records[i].Key), string(key))
	}
	require.Greater(t, plain, 100)
}
