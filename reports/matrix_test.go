package reports

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// matrixRun has one cell of each kind: passed, failed, left to another run, excepted and, of the answer 503, two that are empty.
func matrixRun() ledger.Run {
	cell := func(answer, to string) map[string]string { return map[string]string{"answer": answer, "to": to} }
	return ledger.Run{
		Seed: 7, Backend: "sim", Verdict: ledger.Fail,
		Scenarios: []ledger.ScenarioRun{
			{Name: "calm", Verdict: ledger.Pass},
			{Name: "x [answer=202 to=chunk]", Cell: cell("202", "chunk"), Verdict: ledger.Pass},
			{Name: "x [answer=202 to=check]", Cell: cell("202", "check"), Verdict: ledger.Fail},
		},
		Matrix: &ledger.Matrix{
			Axes: []ledger.Axis{{Name: "answer", Values: []string{"202", "401", "503"}}, {Name: "to", Values: []string{"chunk", "check"}}},
			Planned: []ledger.MatrixCell{
				{Cell: cell("202", "chunk"), Scenario: "x [answer=202 to=chunk]"}, {Cell: cell("202", "check"), Scenario: "x [answer=202 to=check]"},
				{Cell: cell("401", "chunk"), Scenario: "x [answer=401 to=chunk]"},
			},
			Excepted: []ledger.MatrixCell{{Cell: cell("401", "check"), Reason: "it has <none>"}},
		},
	}
}

func TestMatrixShowsEveryKindOfCell(t *testing.T) {
	m := matrix(matrixRun())
	require.Equal(t, []string{"chunk", "check"}, m.Columns)
	var classes [][]string
	for _, r := range m.Rows {
		classes = append(classes, []string{r.Cells[0].Class, r.Cells[1].Class})
	}
	require.Equal(t, [][]string{{"pass", "fail"}, {"left", "except"}, {"empty", "empty"}}, classes)
	require.Equal(t, 2, m.Empty())
	require.Equal(t, "2 empty, 1 not applicable, 1 fail, 1 left to another run, 1 pass", m.Counts())
	require.Nil(t, matrix(ledger.Run{}), "a run without cells has no matrix")
}

// covers: HAR-13
func TestPageLinksEachCellToItsScenario(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, ledger.WriteJSON(filepath.Join(dir, ledger.RunName), matrixRun()))
	require.NoError(t, Write(dir))
	html, err := os.ReadFile(filepath.Join(dir, HTMLName))
	require.NoError(t, err)
	for _, want := range []string{
		`<td class="m pass" title="pass: x [answer=202 to=chunk]"><a href="#s1">✓</a>`, `<a href="#s2">✗</a>`, `not applicable: it has &lt;none&gt;`,
		`<td class="m empty" title="empty: no scenario">EMPTY`, "2 empty, 1 not applicable",
	} {
		require.Contains(t, string(html), want)
	}
	md, err := os.ReadFile(filepath.Join(dir, MarkdownName))
	require.NoError(t, err)
	require.Contains(t, string(md), "Matrix of the sender: 2 empty, 1 not applicable, 1 fail")
}
