package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/harness/spawn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMedian(t *testing.T) {
	in := []float64{9, 1, 5}
	require.InDelta(t, 5, median(in), 0)
	require.Equal(t, []float64{9, 1, 5}, in, "the argument stays")
	require.InDelta(t, 3, median([]float64{5, 1}), 0)
	require.InDelta(t, 7, median([]float64{7}), 0)
}

func TestSummarizeIsARatioOfMedians(t *testing.T) {
	samples := []sample{{10, 10}, {30, 100}, {20, 50}}
	r := summarize(goal{id: "x", unit: "u", reach: 0.4}, samples)
	require.Equal(t, Row{
		ID: "x", Unit: "u", Ours: 20, Reference: 50, Ratio: 0.4, Reach: 0.4, Reached: true, Min: 0.3, Max: 1,
	}, r)
	require.False(t, summarize(goal{reach: 0.41}, samples).Reached)
	require.True(t, summarize(goal{reach: 0.41, atMost: true}, samples).Reached)
	require.True(t, summarize(goal{reach: 0.4, atMost: true}, samples).Reached)
	require.False(t, summarize(goal{reach: 0.39, atMost: true}, samples).Reached)

	fixed := summarize(goal{reach: 1, fixed: 40}, samples)
	require.InDelta(t, 40, fixed.Reference, 0)
	require.InDelta(t, 0.5, fixed.Ratio, 0)
	require.InDelta(t, 0.75, fixed.Max, 0)

	none := summarize(goal{}, []sample{{ours: 3}, {ours: 5}})
	require.Equal(t, Row{Ours: 4, Min: 3, Max: 5, Reached: true}, none)
}

func TestReportIsATableAndTheJSONOfTheSpec(t *testing.T) {
	var out bytes.Buffer
	o := Options{Out: &out, JSON: filepath.Join(t.TempDir(), "new", "bench.json"), Only: []string{"PRF-01", "PRF-06", rowIdle}}
	samples := map[string][]sample{"PRF-01": {{300, 1000}}, rowIdle: {{ours: 19}}}
	failed := failures{"PRF-06": errors.New("no tick"), "PRF-02": errors.New("not asked for")}
	require.NoError(t, o.report(&Result{Rounds: 3, Records: 7}, samples, failed))
	require.EqualError(t, failed.err(), "PRF-06 could not be measured: no tick")
	require.Regexp(t, `(?m)^PRF-01 +drain, 1 lane +records/s +300 +floor, 1 lane +1000 +0.300 +>= 0.550 +0.300..0.300 +short of it$`, out.String())
	require.Regexp(t, `(?m)^idle-rss +memory of an idle node +MiB +19.0 +- +- +- +- +19.0..19.0 *$`, out.String())

	body, err := os.ReadFile(o.JSON)
	require.NoError(t, err)
	var got struct {
		Rounds *int
		Rows   []map[string]any
	}
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, 3, *got.Rounds)
	require.Len(t, got.Rows, 2)
	for _, name := range []string{"id", "unit", "ours", "reference", "ratio", "reach"} {
		for _, r := range got.Rows {
			require.Contains(t, r, name)
		}
	}
	require.Equal(t, "PRF-01", got.Rows[0]["id"])
	require.InDelta(t, 0.3, got.Rows[0]["ratio"], 1e-9)
}

func TestEveryGoalIsMeasured(t *testing.T) {
	var measured []string
	for _, m := range measurements {
		measured = append(measured, m.rows...)
	}
	require.ElementsMatch(t, Rows(), measured)
}

func TestOptionsAreChecked(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	require.ErrorContains(t, Run(t.Context(), Options{Narad: self, Chaos: self, Only: []string{"PRF-99"}}), "PRF-99")
	require.ErrorIs(t, Run(t.Context(), Options{Narad: self, Chaos: filepath.Join(t.TempDir(), "none")}), os.ErrNotExist)
	require.ErrorContains(t, Run(t.Context(), Options{Narad: self, Chaos: self, Rounds: -1}), "rounds")
}

func TestProcFiles(t *testing.T) {
	d, err := parseStat("7 (a )b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 9 0 100 1 1")
	require.NoError(t, err)
	require.Equal(t, 1750*time.Millisecond, d)
	_, err = parseStat("7 (a) S 1")
	require.Error(t, err)
	mib, err := parseRSS("Name:\tnarad\nVmRSS:\t   20480 kB\n")
	require.NoError(t, err)
	require.InDelta(t, 20, mib, 0)
	_, err = parseRSS("Name:\tnarad\n")
	require.Error(t, err)
}

func TestBatchBodyPins(t *testing.T) {
	var batch struct {
		Messages []struct {
			Key       string
			Payload   json.RawMessage
			Partition *int
		}
	}
	require.NoError(t, json.Unmarshal(batchBody(3, 4, 0), &batch))
	require.Len(t, batch.Messages, 4)
	require.Equal(t, key(3), batch.Messages[0].Key)
	require.Equal(t, string(payload(nil, 6)), string(batch.Messages[3].Payload))
	require.Zero(t, *batch.Messages[3].Partition)
	require.NoError(t, json.Unmarshal(batchBody(0, 1, -1), &batch))
	require.NotContains(t, string(batchBody(0, 1, -1)), "partition")
}

func TestAcceptedReadsOneAnswer(t *testing.T) {
	good := "HTTP/1.1 202 Accepted\r\nX: y\r\ncontent-length: 3\r\n\r\nabc"
	r := bufio.NewReader(strings.NewReader(good + good + "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
	require.NoError(t, accepted(r))
	require.NoError(t, accepted(r))
	require.ErrorContains(t, accepted(r), "503")
	require.ErrorIs(t, accepted(r), io.EOF)
}

// TestFloorCopiesEveryRecord runs both ends as their commands do, in this process.
func TestFloorCopiesEveryRecord(t *testing.T) {
	for _, codec := range []string{codecNone, codecZstd} {
		t.Run(codec, func(t *testing.T) { floorCopies(t, codec) })
	}
	require.Error(t, FloorTargetCommand(t.Context(), []string{"x"}, io.Discard))
	require.Error(t, FloorSourceCommand(t.Context(), []string{"x"}, io.Discard))
}

func floorCopies(t *testing.T, codec string) {
	const records, lanes = 3001, 2
	s, err := newStand(Options{Records: records})
	require.NoError(t, err)
	require.NoError(t, s.floorFiles(lanes))
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- FloorTargetCommand(ctx, []string{s.dir, s.path(certName), s.path(keyName), strconv.Itoa(lanes)}, w)
	}()
	address, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	var out bytes.Buffer
	far, err := newDelayLine("127.0.0.1:0", strings.TrimSpace(address), 2*time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, FloorSourceCommand(ctx, []string{s.dir, far.addr, s.path(caName), strconv.Itoa(lanes), "500", codec}, &out))
	far.close()
	nanos, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	require.NoError(t, err)
	require.Positive(t, nanos)
	cancel()
	require.NoError(t, <-ended)
	for i := range lanes {
		want, err := os.ReadFile(sourceFile(s.dir, lanes, i))
		require.NoError(t, err)
		got, err := os.ReadFile(s.path("floor-target-" + strconv.Itoa(i) + ".log"))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "lane %d: %d bytes of %d", i, len(got), len(want))
	}
	require.NoError(t, s.close())
	require.NoDirExists(t, s.dir)
}

func TestChildrenEndWithTheContext(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell to start")
	}
	s := spawner{spawn.New()}
	defer s.Close()
	log := filepath.Join(t.TempDir(), "log")
	text, _, err := s.output(t.Context(), "echo", log, []string{"/bin/sh", "-c", "echo hello"})
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))
	_, _, err = s.output(t.Context(), "broken", log, []string{"/bin/sh", "-c", "echo why >&2; exit 3"})
	require.ErrorContains(t, err, "why")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.output(ctx, "forever", log, []string{"/bin/sh", "-c", "exec sleep 1000"})
	require.ErrorIs(t, err, context.Canceled)

	p, err := s.launch("gone", log, childEnv(), []string{"/bin/sh", "-c", "echo last words; exit 4"}, nil)
	require.NoError(t, err)
	<-p.ended
	require.ErrorContains(t, p.check(), "last words")
	p.kill()
}

func TestPoll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	require.NoError(t, poll(ctx, time.Minute, time.Millisecond, "x", func(context.Context) (bool, error) { n++; return n == 3, nil }))
	require.Equal(t, 3, n)
	wrong := errors.New("wrong")
	require.ErrorIs(t, poll(ctx, time.Minute, time.Millisecond, "x", func(context.Context) (bool, error) { return false, wrong }), wrong)
	require.ErrorContains(t, poll(ctx, time.Millisecond, time.Millisecond, "the moon", func(ctx context.Context) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	}), "for the moon")
	cancel()
	require.ErrorIs(t, poll(ctx, time.Minute, time.Millisecond, "x", func(ctx context.Context) (bool, error) { return false, ctx.Err() }), context.Canceled)
}

func TestPortsDiffer(t *testing.T) {
	s := &stand{ports: map[int]bool{}}
	one, err := s.port()
	require.NoError(t, err)
	two, err := s.port()
	require.NoError(t, err)
	require.NotEqual(t, one, two)
}
