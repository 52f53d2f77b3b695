package reports

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

func TestEveryPageSaysHowManyTriesItTook(t *testing.T) {
	dir := t.TempDir()
	run := ledger.Run{Backend: "process", Verdict: ledger.Pass, Scenarios: []ledger.ScenarioRun{
		{Name: "calm", Folder: "calm", Verdict: ledger.Pass, Tries: 1},
		{Name: "cut", Folder: "cut.try-3", Verdict: ledger.Pass, Tries: 3, Earlier: []ledger.Try{
			{Folder: "cut", Verdict: ledger.Inconclusive, Says: "no <traffic> at 3s", DurationMS: 4000},
			{Folder: "cut.try-2", Verdict: ledger.Inconclusive, Says: "a node died"},
		}},
	}}
	require.NoError(t, ledger.WriteJSON(filepath.Join(dir, ledger.RunName), run))
	require.NoError(t, Write(dir))
	read := func(name string) string {
		body, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(body)
	}
	page := read(HTMLName)
	for _, want := range []string{"Played 3 times", `href="cut.try-2/"`, "no &lt;traffic&gt; at 3s", "a node died", `<td class="n">3</td>`} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "Played 1 times")

	var s suite
	require.NoError(t, xml.Unmarshal([]byte(read(JUnitName)), &s))
	require.Equal(t, []property{{"tries", "1"}}, s.Cases[0].Property.List)
	require.Equal(t, []property{{"tries", "3"}}, s.Cases[1].Property.List)
	require.Zero(t, s.Errors)

	md := read(MarkdownName)
	require.Contains(t, md, "| cut | pass | 3 |")
	require.Contains(t, md, "**cut**, try 1 of 3: inconclusive no &lt;traffic> at 3s")
}
