package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

const resentSeries = `narad_remote_resent_records_total{remote="b"}`

func twice(n int) *ledger.Scenario {
	s := hand(n)
	again := s.Wire[1]
	again.Seq = 100
	s.Wire = append(s.Wire, again)
	return s
}

// covers: HAR-09
func TestDuplicates(t *testing.T) {
	expect(t, duplicates, hand(6), ledger.Pass, "b: 0 copies too many, 0 explained")
	expect(t, duplicates, twice(6), ledger.Fail, "2 copies too many through remote b, 0 are explained")

	s := twice(6)
	s.Samples[3].Metrics[resentSeries], s.Wire[1].Sent = 2, false
	expect(t, duplicates, s, ledger.Pass, "2 copies too many, 2 explained")

	// Another remote's resends explain nothing.
	s = twice(6)
	s.Samples[3].Metrics[`narad_remote_resent_records_total{remote="c"}`] = 2
	expect(t, duplicates, s, ledger.Fail, "0 are explained")

	// One that the parent holds twice and that was sent once does not hide another one.
	s = twice(6)
	for _, i := range []int{0, 1} {
		r := s.Parent[i]
		r.Offset += 10
		s.Parent = append(s.Parent, r)
	}
	expect(t, duplicates, s, ledger.Fail, "2 copies too many")

	// One that is missing does not hide one that is there twice.
	s = twice(6)
	s.Wire = append(s.Wire[:0], s.Wire[1:]...)
	expect(t, duplicates, s, ledger.Fail, "2 copies too many")

	// The parent holds it twice, so two copies are owed.
	s = twice(6)
	for _, i := range []int{2, 3} {
		r := s.Parent[i]
		r.Offset += 10
		s.Parent = append(s.Parent, r)
	}
	expect(t, duplicates, s, ledger.Pass, "")

	// A later attach that starts lower owes its range again.
	s = twice(6)
	late := s.Facts.Links[0]
	late.Epoch, late.StartOffsets = "e2", []int64{2}
	s.Facts.Links = append(s.Facts.Links, late)
	expect(t, duplicates, s, ledger.Pass, "")
}

// covers: HAR-09
func TestDuplicatesAfterADeath(t *testing.T) {
	s := twice(6)
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 30, Asked: true, Cursors: 1}}
	expect(t, duplicates, s, ledger.Pass, "1000 explained")

	s = twice(6)
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 30, Asked: true}}
	expect(t, duplicates, s, ledger.Fail, "0 are explained")

	s.Facts.Deaths[0].Asked = false // what it sent since the last sample
	expect(t, duplicates, s, ledger.Pass, "")

	// A counter that begins again after a restart goes on from what it was.
	s = twice(6)
	s.Wire[1].Sent = false
	more := s.Samples[3]
	s.Samples[3].Metrics = map[string]float64{resentSeries: 1}
	more.Metrics = map[string]float64{resentSeries: 1}
	zero := more
	zero.Metrics = map[string]float64{resentSeries: 0}
	s.Samples = append(s.Samples, zero, more)
	expect(t, duplicates, s, ledger.Pass, "2 explained")
}

// covers: HAR-09, CUR-07, CUR-12
func TestDuplicatesAfterAGracefulStop(t *testing.T) {
	stopped := func(change func(first *ledger.WireRequest)) *ledger.Scenario {
		s := twice(6)
		s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 24, Asked: true, Graceful: true, Cursors: 1, LastSample: 20}}
		s.Faults = []ledger.Fault{{Kind: "stop", On: "source-1", Start: 24, End: 3000}}
		last := &s.Wire[len(s.Wire)-1]
		last.At, last.Done = 3100, 3101
		change(&s.Wire[1])
		return s
	}
	expect(t, duplicates, stopped(func(*ledger.WireRequest) {}), ledger.Fail, "2 copies too many through remote b, 0 are explained")
	expect(t, duplicates, stopped(func(*ledger.WireRequest) {}), ledger.Fail, "came again in request 100")
	expect(t, duplicates, stopped(func(r *ledger.WireRequest) { r.Sent = false }), ledger.Pass, "2 explained")
	expect(t, duplicates, stopped(func(r *ledger.WireRequest) { r.Doubt = true }), ledger.Pass, "2 explained")
	expect(t, duplicates, stopped(func(r *ledger.WireRequest) { r.Done = 24 + stopWait }), ledger.Pass, "2 explained")
	// What failed before the counters were read is in them.
	expect(t, duplicates, stopped(func(r *ledger.WireRequest) { r.Sent, r.At, r.Done = false, 1, 19 }), ledger.Fail, "0 are explained")
	// What began after the stop was not cut by it.
	late := func(r *ledger.WireRequest) { r.Sent, r.At, r.Done = false, 6000, 6001 }
	expect(t, duplicates, stopped(late), ledger.Fail, "0 are explained")
	slow := stopped(late)
	slow.Facts.Deaths[0].Ended = 6500
	expect(t, duplicates, slow, ledger.Pass, "2 explained")
}

func TestCounterAcrossRestarts(t *testing.T) {
	s := hand(2)
	s.Samples = nil
	for _, v := range []float64{3, 3, 2, 4} {
		s.Samples = append(s.Samples, ledger.Sample{Node: "source-1", Metrics: map[string]float64{resentSeries: v}})
	}
	s.Samples = append(s.Samples, ledger.Sample{Node: "source-2", Metrics: map[string]float64{resentSeries: 10, `narad_remote_resent_records_total_other{remote="b"}`: 99}})
	total, sampled := counter(s, "narad_remote_resent_records_total", "remote", "b")
	require.True(t, sampled)
	require.InDelta(t, 17, total, 0)

	// What a new process has counted as high as the one before it, or higher, is told by the death between them.
	s.Samples = nil
	for i, v := range []float64{4, 4, 6} {
		s.Samples = append(s.Samples, ledger.Sample{Node: "source-1", At: int64(10 * (i + 1)), Metrics: map[string]float64{resentSeries: v}})
	}
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 10}, {Node: "source-1", At: 25}, {Node: "source-2", At: 15}}
	total, _ = counter(s, "narad_remote_resent_records_total", "remote", "b")
	require.InDelta(t, 14, total, 0)

	// What a dying process still tells is its own, and not that of the next one.
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 5, Ended: 15}}
	total, _ = counter(s, "narad_remote_resent_records_total", "remote", "b")
	require.InDelta(t, 10, total, 0)
}

// covers: HAR-09
func TestDuplicatesInconclusive(t *testing.T) {
	expect(t, duplicates, lacking(hand(6), ledger.LinksName), ledger.Inconclusive, "links.jsonl: absent")
	s := hand(6)
	s.Samples = nil
	expect(t, duplicates, s, ledger.Inconclusive, "no node's metrics were read")
	s = hand(6)
	s.Wire = nil
	expect(t, duplicates, s, ledger.Inconclusive, "no record was accepted")
}

// covers: HAR-09, CUR-08
func TestARecordThatWasAnsweredInPeaceDoesNotComeAgain(t *testing.T) {
	counted := func(change func(*ledger.Scenario)) *ledger.Scenario {
		s := twice(6)
		s.Samples[3].Metrics[resentSeries] = 2 // enough by number
		s.Wire[len(s.Wire)-1].At, s.Wire[len(s.Wire)-1].Done = 40_000, 40_001
		change(s)
		return s
	}
	expect(t, duplicates, counted(func(*ledger.Scenario) {}), ledger.Fail, "came again in request 100, although request 2 was answered 202")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Wire[1].Sent = false }), ledger.Pass, "")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Wire[1].Doubt = true }), ledger.Pass, "")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Wire[1].Done += 1000 }), ledger.Pass, "")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Faults = []ledger.Fault{{On: "source>target", Start: 1000, End: 2000}} }), ledger.Pass, "")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Faults = []ledger.Fault{{On: "target-1", Start: 1000, End: 2000}} }), ledger.Fail, "came again")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Faults = []ledger.Fault{{On: "source>target", Start: 9000, End: 9500}} }), ledger.Fail, "came again")
	expect(t, duplicates, counted(func(s *ledger.Scenario) { s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 3000, Cursors: 1}} }), ledger.Pass, "")
	// What lay in a frozen target's buffers is accepted after its resend; a doubtful one that began after it explains nothing.
	parked := func(at int64) *ledger.Scenario {
		return counted(func(s *ledger.Scenario) { s.Wire[len(s.Wire)-1].At, s.Wire[len(s.Wire)-1].Sent = at, false })
	}
	expect(t, duplicates, parked(0), ledger.Pass, "")
	expect(t, duplicates, parked(40_000), ledger.Fail, "came again")
	// A cursor whose file rots begins again, however long ago its records were accepted.
	rots := func(kind string) *ledger.Scenario {
		return counted(func(s *ledger.Scenario) {
			s.Faults = []ledger.Fault{{Kind: kind, On: "source-1", Start: 9000, End: 9500}}
		})
	}
	expect(t, duplicates, rots("bit_flip"), ledger.Pass, "")
	expect(t, duplicates, rots("slow_fsync"), ledger.Fail, "came again")
}
