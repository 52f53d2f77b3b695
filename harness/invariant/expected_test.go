package invariant

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

func atHand() *ledger.Scenario {
	return &ledger.Scenario{
		Problems: map[string]string{},
		Facts:    ledger.Facts{Epoch: 1_700_000_000_000, WireRead: true, LogsRead: true, Phases: ledger.Phases{LoadStart: 1000}},
	}
}

// covers: HAR-10
func TestLooksAreCompared(t *testing.T) {
	for _, c := range []struct{ want, got, verdict string }{
		{"running", "running", ledger.Pass},
		{"throttled or unavailable", "unavailable", ledger.Pass},
		{"running", "unavailable", ledger.Fail},
		{"> 3", "4", ledger.Pass},
		{"> 3", "3", ledger.Fail},
		{"> 3", "", ledger.Fail},
	} {
		s := atHand()
		s.Facts.Looks = []ledger.Look{{Step: "look at 5s", Member: "state", Want: c.want, Got: c.got}}
		require.Equal(t, c.verdict, looks(s).verdict(NameLooks).Verdict, "%+v", c)
	}
}

// covers: HAR-10
func TestLogLinesAreCounted(t *testing.T) {
	s := atHand()
	s.Dir = t.TempDir()
	nodes := filepath.Join(s.Dir, ledger.NodesName)
	require.NoError(t, os.MkdirAll(nodes, 0o755))
	log := `{"time":"2023-11-14T22:13:22Z","level":"ERROR","msg":"remote child stalled","state":"forbidden","partition":0}
{"time":"2023-11-14T22:13:32Z","level":"ERROR","msg":"remote child stalled","state":"forbidden","partition":1}
{"time":"2023-11-14T22:13:33Z","level":"WARN","msg":"remote child stalled","state":"throttled","partition":1}
panic: not a line
`
	require.NoError(t, os.WriteFile(filepath.Join(nodes, "source-1.log"), []byte(log), 0o644))
	for _, c := range []struct {
		want    ledger.LogLines
		verdict string
	}{
		{ledger.LogLines{Is: "== 3"}, ledger.Pass},
		{ledger.LogLines{Level: "error", Is: "== 2"}, ledger.Pass},
		{ledger.LogLines{Level: "error", Is: "== 3"}, ledger.Fail},
		{ledger.LogLines{With: map[string]string{"partition": "1"}, Is: "== 2"}, ledger.Pass},
		{ledger.LogLines{With: map[string]string{"partition": "*"}, Is: "== 3"}, ledger.Pass},
		{ledger.LogLines{With: map[string]string{"offset": "*"}, Is: "> 0"}, ledger.Fail},
		{ledger.LogLines{On: "source-2", Is: "== 0"}, ledger.Pass},
		{ledger.LogLines{From: 5000, Until: 11_500, Is: "== 1"}, ledger.Pass},
		{ledger.LogLines{From: 5000, Until: 11_500, Is: "== 2"}, ledger.Fail},
	} {
		c.want.Message = "remote child stalled"
		s.Facts.Expect.Logs = []ledger.LogLines{c.want}
		require.Equal(t, c.verdict, logLines(s).verdict(NameLogs).Verdict, "%+v", c)
	}
	s.Facts.LogsRead = false
	require.Equal(t, ledger.Inconclusive, logLines(s).verdict(NameLogs).Verdict)
}

// covers: HAR-10
func TestRequestsAreCounted(t *testing.T) {
	s := atHand()
	s.Wire = []ledger.WireRequest{
		{At: 1500, Path: "/v1/topics/orders/produce/batch", Topic: "orders", Status: 202, Outcome: ledger.WireAccepted, Sent: true, Bytes: 65_537, Records: []ledger.WireRecord{{ID: "a"}}},
		{At: 2500, Path: "/v1/topics/orders/produce/batch", Topic: "orders", Status: 400, Outcome: ledger.WireRefused},
		{At: 3500, Path: "/v1/topics/orders/children?partitions=false", Topic: "orders", Status: 200, Outcome: ledger.WireAnswered},
	}
	for _, c := range []struct {
		want    ledger.Asked
		verdict string
	}{
		{ledger.Asked{Route: "any", Is: "== 3"}, ledger.Pass},
		{ledger.Asked{Route: "chunk", Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "chunk", Is: "> 1"}, ledger.Fail},
		{ledger.Asked{Route: "probe", Status: 400, Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "children", From: 2000, Until: 3000, Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "any", From: 1000, Until: 2000, Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "any", Answer: "whole", Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "any", Answer: "part", Is: "== 1"}, ledger.Fail},
		{ledger.Asked{Route: "any", Records: "== 1", Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "any", Records: "> 1", Is: "> 0"}, ledger.Fail},
		{ledger.Asked{Route: "chunk", Bytes: "> 65536", Is: "== 1"}, ledger.Pass},
		{ledger.Asked{Route: "chunk", Bytes: "<= 65536", Is: "== 1"}, ledger.Fail},
		{ledger.Asked{Route: "chunk", Bytes: "many", Is: "== 1"}, ledger.Inconclusive},
	} {
		s.Facts.Expect.Requests = []ledger.Asked{c.want}
		require.Equal(t, c.verdict, asked(s).verdict(NameAsked).Verdict, "%+v", c)
	}
}

// covers: HAR-10
func TestProducesAreCountedByTheirAnswer(t *testing.T) {
	s := atHand()
	s.Operations = []ledger.Operation{
		{At: 1500, Kind: ledger.KindProduce, Node: "source-1", Status: 202, Outcome: ledger.Acknowledged},
		{At: 2500, Kind: ledger.KindProduce, Node: "source-2", Status: 503, Outcome: ledger.Unknown},
		{At: 3500, Kind: ledger.KindProduce, Node: "source-2", Outcome: ledger.Unknown},
		{At: 3500, Kind: ledger.KindAdmin, Node: "source-2", Status: 503, Outcome: ledger.Unknown},
	}
	for _, c := range []struct {
		want    ledger.Produced
		verdict string
	}{
		{ledger.Produced{Status: 503, Is: "== 1"}, ledger.Pass},
		{ledger.Produced{Status: 503, Is: "== 0"}, ledger.Fail},
		{ledger.Produced{Status: 503, On: "source-1", Is: "== 0"}, ledger.Pass},
		{ledger.Produced{Status: 202, From: 0, Until: 1000, Is: "== 1"}, ledger.Pass},
		{ledger.Produced{Status: 202, From: 1000, Is: "== 1"}, ledger.Fail},
	} {
		s.Facts.Expect.Produces = []ledger.Produced{c.want}
		require.Equal(t, c.verdict, produces(s).verdict(NameProduces).Verdict, "%+v", c)
	}
}

// covers: CUR-10, HAR-05
func TestALossIsAPassOnlyWhenItIsCounted(t *testing.T) {
	s := atHand()
	s.Facts.Drops = []ledger.Drop{{Parent: "orders", Child: "b", From: 10, To: 19, Records: 10}}
	sample := func(v float64) {
		s.Samples = []ledger.Sample{{Node: "source-1", Metrics: map[string]float64{`narad_fanout_child_dropped_messages{parent="orders"}`: v}}}
	}
	sample(10)
	f := &finding{}
	require.Contains(t, countedLoss(s, f), "counted loss of 10 records")
	require.Zero(t, f.broken)
	sample(9)
	countedLoss(s, f)
	require.EqualValues(t, 1, f.broken)
}

// A span of a timeline that was late is where the scenario plans it, as late as what came then.
//
// covers: HAR-10
func TestASpanFollowsALateTimeline(t *testing.T) {
	s := atHand()
	s.Facts.Late = []ledger.Late{{At: 10_000, By: 4000}, {At: 30_000, By: 6000}}
	for _, c := range []struct {
		at, from, until int64
		in              bool
	}{
		{5000, 5000, 9000, true},
		{9000, 5000, 9000, false},
		{13_999, 5000, 10_000, true}, // what was planned for 10 s came at 14 s
		{14_000, 5000, 10_000, false},
		{13_999, 10_000, 0, false},
		{14_000, 10_000, 0, true},
		{36_000, 20_000, 31_000, true},
		{37_000, 20_000, 31_000, false},
		{35_999, 30_000, 0, false},
	} {
		require.Equal(t, c.in, within(s, 1000+c.at, c.from, c.until), "%+v", c)
	}
}
