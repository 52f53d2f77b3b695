package reports

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"narad.example/harness/ledger"
)

//go:embed soak.html
var soakSource string

var soakPage = parse("soak", soakSource)

// SoakPage is what the page of a soak shows.
type SoakPage struct {
	ledger.Soak
	Faults     string
	Bars       template.HTML
	Hours      []SoakHour
	Rounds     []SoakRound
	Recoveries []ledger.Recovery
	Trends     []Trend  // past soaks of the same folder and this one, the oldest first
	Unread     []string // folders beside it whose head is broken
}

// SoakHour is an hour's row.
type SoakHour struct{ ledger.SoakHour }

// SoakRound is a round's row.
type SoakRound struct{ ledger.SoakRound }

// FaultWords are the hour's faults, by kind.
func (h SoakHour) FaultWords() string { return kinds(h.Faults) }

// FaultWords are the round's faults, by kind.
func (r SoakRound) FaultWords() string { return kinds(r.Faults) }

// Trend is one soak among others.
type Trend struct {
	Folder, Started, Verdict, Backend, Commit string
	Seed                                      uint64
	LastedMS                                  int64
	Totals                                    ledger.SoakTotals
	This                                      bool
}

// RecordsAnHour is the soak's speed.
func (t Trend) RecordsAnHour() int64 {
	if t.LastedMS <= 0 {
		return 0
	}
	return t.Totals.Acknowledged * time.Hour.Milliseconds() / t.LastedMS
}

// DuplicatesOfThousand is how many copies beyond the first a thousand replicated records cost.
func (t Trend) DuplicatesOfThousand() string {
	if t.Totals.Replicated == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f", float64(t.Totals.Duplicates)*1000/float64(t.Totals.Replicated))
}

// mostTrends bounds the past that a page shows.
const mostTrends = 30

// IsSoak tells whether a folder is a soak's.
func IsSoak(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ledger.SoakName))
	return err == nil
}

// WriteSoak makes the pages of a soak's folder from its data and from the soaks beside it. Each page is replaced in one step.
func WriteSoak(dir string) error {
	p, err := LoadSoak(dir)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err = soakPage.Execute(&html, p); err != nil {
		return fmt.Errorf("the page of the soak: %w", err)
	}
	if err = ledger.Replace(filepath.Join(dir, HTMLName), html.Bytes()); err != nil {
		return err
	}
	return ledger.Replace(filepath.Join(dir, MarkdownName), []byte(soakMarkdown(p)))
}

// LoadSoak reads a soak's folder into a page.
func LoadSoak(dir string) (*SoakPage, error) {
	soak, err := ledger.ReadJSON[ledger.Soak](filepath.Join(dir, ledger.SoakName))
	if err != nil {
		return nil, fmt.Errorf("%s is no soak's folder: %w", dir, err)
	}
	p := &SoakPage{Soak: soak, Faults: cmp.Or(kinds(soak.Totals.Faults), "none yet"), Recoveries: soak.Slowest, Bars: bars(soak.Rounds)}
	for _, h := range soak.Hours {
		p.Hours = append(p.Hours, SoakHour{h})
	}
	for _, r := range soak.Rounds {
		p.Rounds = append(p.Rounds, SoakRound{r})
	}
	p.trends(dir)
	return p, nil
}

// trends reads the soaks beside this one. One that is broken must not take this one's report with it.
func (p *SoakPage) trends(dir string) {
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Clean(dir)), "*", ledger.SoakName)) // the pattern is good
	for _, file := range beside {
		folder := filepath.Base(filepath.Dir(file))
		if info, err := os.Lstat(filepath.Dir(file)); err != nil || info.Mode()&os.ModeSymlink != 0 || folder == filepath.Base(filepath.Clean(dir)) {
			continue
		}
		past, err := ledger.ReadJSON[ledger.Soak](file)
		if err != nil {
			p.Unread = append(p.Unread, folder)
			continue
		}
		if past.Started <= p.Started { // pages made again show what was past then
			p.Trends = append(p.Trends, trend(folder, &past))
		}
	}
	slices.SortStableFunc(p.Trends, func(a, b Trend) int { return cmp.Compare(a.Started, b.Started) })
	p.Trends = p.Trends[max(0, len(p.Trends)-mostTrends):]
	this := trend("", &p.Soak)
	this.This = true
	p.Trends = append(p.Trends, this)
}

func trend(folder string, s *ledger.Soak) Trend {
	t := Trend{Folder: folder, Started: s.Started, Verdict: s.Verdict, Backend: s.Backend, Commit: s.Commit, Seed: s.Seed, Totals: s.Totals}
	if n := len(s.Rounds); n > 0 {
		t.LastedMS = s.Rounds[n-1].AtMS + s.Rounds[n-1].DurationMS
	}
	return t
}

// kinds lists counts by kind, the most frequent first.
func kinds(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}

// span is a length of time in hours and minutes.
func span(ms int64) string {
	d := (time.Duration(ms) * time.Millisecond).Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
}

// bars draws the slowest recovery of each round, in the order of the rounds, coloured by verdict.
func bars(rounds []ledger.SoakRound) template.HTML {
	const width, height, floor = 1000.0, 120.0, 100.0
	var worst int64
	for i := range rounds {
		if r := rounds[i].Recoveries; len(r) > 0 {
			worst = max(worst, r[0].MS)
		}
	}
	if worst == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="slowest recovery of each round">`, width, height)
	step := width / float64(len(rounds))
	for i := range rounds {
		var ms int64
		if r := rounds[i].Recoveries; len(r) > 0 {
			ms = r[0].MS
		}
		tall := max(1, float64(ms)/float64(worst)*(floor-14))
		fmt.Fprintf(&b, `<rect class="bar %s" x="%.2f" y="%.1f" width="%.2f" height="%.1f"><title>round %d: %s</title></rect>`,
			template.HTMLEscapeString(rounds[i].Verdict), float64(i)*step, floor-tall, min(30, step*0.8), tall, rounds[i].Number, seconds(ms))
	}
	fmt.Fprintf(&b, `<line class="axis" x1="0" y1="%[1]g" x2="%[2]g" y2="%[1]g"/><text x="0" y="%[3]g">slowest recovery of each round, the highest bar is %[4]s</text></svg>`,
		floor, width, height-4, seconds(worst))
	return template.HTML(b.String()) // numbers, and words that were escaped
}
