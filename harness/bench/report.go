package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Result is what `chaos bench --json` writes (harness.md).
type Result struct {
	Rounds  int     `json:"rounds"`
	Records int     `json:"records"` // of one drain
	Rows    []Row   `json:"rows"`
	Curves  []Curve `json:"curves,omitempty"`

	// What the machine ran besides: with a load above its CPUs the rows whose reference is a number say little.
	CPUs       int    `json:"cpus"`
	LoadBefore string `json:"load_before"` // of the last minute; empty where it cannot be read
	LoadAfter  string `json:"load_after"`
}

func loadAverage() string {
	body, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	load, _, _ := strings.Cut(string(body), " ")
	return load
}

// Row is one figure: medians over the rounds. Ratio is ours over reference, Min and Max are the smallest and the largest ratio
// of one round. Reference is the goal itself where that is a number; a row that promises nothing has neither reference nor
// ratio nor reach (0), and its Min and Max are of ours.
type Row struct {
	ID        string  `json:"id"`
	What      string  `json:"what"`
	Against   string  `json:"against,omitempty"`
	Unit      string  `json:"unit"`
	Ours      float64 `json:"ours"`
	Reference float64 `json:"reference"`
	Ratio     float64 `json:"ratio"`
	Reach     float64 `json:"reach"`
	AtMost    bool    `json:"at_most,omitempty"` // Reach is an upper bound
	Reached   bool    `json:"reached"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
}

// summarize makes a row of a goal's samples, at least one.
func summarize(g goal, samples []sample) Row {
	var ours, reference, ratios []float64
	for _, s := range samples {
		if g.fixed != 0 {
			s.reference = g.fixed
		}
		ours, reference = append(ours, s.ours), append(reference, s.reference)
		ratios = append(ratios, over(s.ours, s.reference))
	}
	r := Row{
		ID: g.id, What: g.what, Against: g.against, Unit: g.unit, Reach: g.reach, AtMost: g.atMost,
		Ours: median(ours), Reference: median(reference), Min: slices.Min(ratios), Max: slices.Max(ratios),
	}
	r.Ratio = over(r.Ours, r.Reference)
	if g.reach == 0 {
		r.Min, r.Max, r.Reached = slices.Min(ours), slices.Max(ours), true
	} else {
		r.Reached = r.Ratio == g.reach || (r.Ratio > g.reach) != g.atMost
	}
	return r
}

// over is a/b, and 0 without a reference: JSON has no infinity.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// median of at least one value.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	m := len(v) / 2
	if len(v)%2 == 1 {
		return v[m]
	}
	return (v[m-1] + v[m]) / 2
}

// table prints the rows in columns.
func (r *Result) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintf(w, "row\tmeasured\tunit\tours\tagainst\treference\tratio\treach\tmin..max\t\n")
	for _, row := range r.Rows {
		if err != nil {
			return err
		}
		reference, ratio, reach, verdict := figure(row.Reference), figure(row.Ratio), figure(row.Reach), ""
		switch {
		case row.Reach == 0:
			reference, ratio, reach = "-", "-", "-"
		case row.AtMost:
			reach = "<= " + reach
		default:
			reach = ">= " + reach
		}
		if !row.Reached {
			verdict = "short of it"
		}
		against := row.Against
		if against == "" {
			against = "-"
		}
		_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s..%s\t%s\n", row.ID, row.What, row.Unit, figure(row.Ours), against,
			reference, ratio, reach, figure(row.Min), figure(row.Max), verdict)
	}
	if err != nil {
		return err
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = drawCurves(out, r.Curves); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "medians of %d rounds; a drain copies %d records; %d CPUs, load %s before and %s after\n",
		r.Rounds, r.Records, r.CPUs, r.LoadBefore, r.LoadAfter)
	return err
}

// figure prints a number with about three digits that count.
func figure(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// write stores the result as JSON and makes the folder when it is missing.
func (r *Result) write(path string) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}
