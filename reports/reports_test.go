package reports

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// folder writes a run folder of two scenarios, one with a violation and hostile names.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run := ledger.Run{Seed: 7, Commit: "abc", Backend: "sim", Verdict: ledger.Fail, Scenarios: []ledger.ScenarioRun{
		{Name: "calm", File: "basic/calm.yaml", Folder: "calm", Backend: "sim", Covers: []string{"ANS-01"}, Verdict: ledger.Pass, DurationMS: 1500,
			Counts: ledger.Counts{Acknowledged: 20000, OnWire: 20000}},
		{Name: "<script>x|y", File: "bad.yaml", Folder: "bad", Backend: "sim", Covers: []string{"HAR-05"}, Verdict: ledger.Fail,
			Invariants: []ledger.Verdict{{Name: "no gap", Verdict: ledger.Fail, Says: "one record is missing"}}},
		{Name: "later", File: "later.yaml", Backend: "sim", Verdict: ledger.NotRun, Says: "needs containers"},
	}}
	require.NoError(t, ledger.WriteJSON(filepath.Join(dir, ledger.RunName), run))
	bad := filepath.Join(dir, "bad")
	require.NoError(t, ledger.WriteJSON(filepath.Join(bad, ledger.FactsName), ledger.Facts{Phases: ledger.Phases{End: 10_000}}))
	require.NoError(t, ledger.WriteJSON(filepath.Join(bad, ledger.VerdictsName), []ledger.Verdict{{Name: "no gap", Verdict: ledger.Fail, Says: "one record is missing", IDs: []string{"nrd-0000000000000001"}}}))
	require.NoError(t, ledger.Write(filepath.Join(bad, ledger.LinksName), []ledger.Sample{
		{At: 1000, Node: "source-1", Produced: 10, OnWire: 5}, {At: 1000, Child: "c<b>", State: "running", Lag: 5},
		{At: 4000, Child: "c<b>", State: "unavailable", Lag: 50}, {At: 8000, Child: "c<b>", State: "running"},
	}))
	require.NoError(t, ledger.Write(filepath.Join(bad, ledger.FaultsName), []ledger.Fault{{Name: "cut <link>", Start: 3500, End: 7000, Landed: true}}))
	require.NoError(t, ledger.Write(filepath.Join(bad, ledger.WireName), []ledger.WireRequest{
		{Done: 99, Outcome: "cut", Records: []ledger.WireRecord{{ID: "nrd-0000000000000001"}}},
	}))
	return dir
}

// covers: HAR-13
func TestPageShowsTimelineStatesFaultsAndViolation(t *testing.T) {
	dir := folder(t)
	require.NoError(t, Write(dir))
	body, err := os.ReadFile(filepath.Join(dir, HTMLName))
	require.NoError(t, err)
	html := string(body)
	for _, want := range []string{"<svg", `class="produced"`, "unavailable", "cut &lt;link&gt;", "nrd-0000000000000001", "one record is missing", "--seed 7", "ANS-01"} {
		require.Contains(t, html, want, "the page lacks %q", want)
	}
	for _, never := range []string{"<script", "c<b>", "http://", "https://"} {
		require.NotContains(t, html, never, "words of a run are escaped and the page needs no network: %q", never)
	}
}

func TestChangesNameTheFaultsInForce(t *testing.T) {
	p, err := Load(folder(t))
	require.NoError(t, err)
	c := p.Scenarios[1].Changes
	require.Len(t, c, 3)
	require.Equal(t, []string{"cut <link>"}, c[1].Faults)
	require.Empty(t, c[0].Faults)
}

// covers: HAR-11
func TestJUnitKeepsTheVerdictsApart(t *testing.T) {
	p, err := Load(folder(t))
	require.NoError(t, err)
	body, err := JUnit(p.Run)
	require.NoError(t, err)
	var s suite
	require.NoError(t, xml.Unmarshal(body, &s))
	require.Equal(t, []int{3, 1, 0, 1}, []int{s.Tests, s.Failures, s.Errors, s.Skipped})
	require.Contains(t, s.Cases[1].Failure.Text, "one record is missing")
	run := p.Run
	run.Scenarios[0].Verdict = ledger.Inconclusive
	body, err = JUnit(run)
	require.NoError(t, err)
	require.Contains(t, string(body), `errors="1"`)
}

func TestMarkdownKeepsItsTable(t *testing.T) {
	p, err := Load(folder(t))
	require.NoError(t, err)
	md := Markdown(p.Run)
	require.Contains(t, md, `| &lt;script>x\|y | fail |`)
	require.Contains(t, md, "- no gap: fail: one record is missing")
}

func TestAFolderThatIsNone(t *testing.T) {
	require.ErrorContains(t, Write(t.TempDir()), "is no run folder")
}
