package reports

import (
	"fmt"
	"strings"
)

// soakMarkdown is a soak as a comment or a mail in the morning.
func soakMarkdown(p *SoakPage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Chaos soak: %s\n\n%s\n\nseed %d, backend %s, commit %s, begun %s\n\n", words(p.Verdict), cell(p.Says), p.Seed, p.Backend, p.Commit, p.Started)
	if v := p.Violation; v != nil {
		fmt.Fprintf(&b, "**Round %d broke a promise**: %s: %s\n\nkept in `%s`; again:\n\n", v.Round, cell(v.Judge), cell(v.Says), v.Folder)
		for _, command := range v.Replay {
			fmt.Fprintf(&b, "    %s\n", command)
		}
		b.WriteString("\n")
	}
	b.WriteString("| Hour | Rounds | Inconclusive | Acknowledged | Replicated | Duplicates | Worst lag | Slowest recovery | Faults |\n|---:|---:|---:|---:|---:|---:|---:|---|---|\n")
	for i := range p.Hours {
		h := &p.Hours[i]
		b.WriteString(soakRow(fmt.Sprint(h.Hour), h.Rounds, h.Inconclusive, h.Acknowledged, h.Replicated, h.Duplicates, h.WorstLag, seconds(h.Slowest.MS)+" after "+h.Slowest.Fault, h.FaultWords()))
	}
	t := &p.Totals
	b.WriteString(soakRow("all", t.Rounds, t.Inconclusive, t.Acknowledged, t.Replicated, t.Duplicates, t.WorstLag, seconds(t.Slowest.MS)+" after "+t.Slowest.Fault, p.Faults))
	b.WriteString("\n| Slowest recoveries | Round | Fault |\n|---:|---:|---|\n")
	for _, r := range p.Recoveries {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", seconds(r.MS), r.Round, cell(r.Fault))
	}
	b.WriteString("\n| Soak | Verdict | Seed | Backend | Commit | Lasted | Rounds | Inconclusive | Records an hour | Duplicates of 1000 | Worst lag | Slowest recovery |\n|---|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, t := range p.Trends {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %d | %d | %s | %s | %s | %s |\n", t.Started, words(t.Verdict), t.Seed, t.Backend, cell(t.Commit), span(t.LastedMS),
			t.Totals.Rounds, t.Totals.Inconclusive, thousands(t.RecordsAnHour()), t.DuplicatesOfThousand(), thousands(t.Totals.WorstLag), seconds(t.Totals.Slowest.MS))
	}
	for i := range p.Rounds {
		r := &p.Rounds[i]
		for try, t := range r.Earlier {
			fmt.Fprintf(&b, "\n**Round %d**, try %d of %d: %s\n", r.Number, try+1, r.Tries, cell(words(t.Verdict)+" "+t.Says))
		}
		if r.Says != "" {
			fmt.Fprintf(&b, "\n**Round %d**: %s: %s\n", r.Number, words(r.Verdict), cell(r.Says))
			if r.Replay != "" {
				fmt.Fprintf(&b, "\n    %s\n", r.Replay)
			}
		}
	}
	fmt.Fprintf(&b, "\nThe same row of rounds: `%s`\n", p.Command)
	return b.String()
}

func soakRow(name string, rounds, inconclusive int, acknowledged, replicated, duplicates, lag int64, slowest, faults string) string {
	return fmt.Sprintf("| %s | %d | %d | %s | %s | %s | %s | %s | %s |\n", name, rounds, inconclusive, thousands(acknowledged), thousands(replicated), thousands(duplicates),
		thousands(lag), cell(slowest), cell(faults))
}
