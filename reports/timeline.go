package reports

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// Timeline is a scenario on one time axis: records produced, on the wire and on the target, the lag, each link's state, and
// bands where faults were in force (HAR-13).
type Timeline struct {
	End      int64
	Produced []point
	OnWire   []point
	OnTarget []point
	Lag      []point
	States   []band
	Faults   []band
	Children []string
}

// point is a value at a time in ms.
type point struct{ at, value int64 }

// band is a span of time in ms with a word; row is the child's place or the fault's.
type band struct {
	from, to int64
	word     string
	row      int
	landed   bool
}

func timeline(data *ledger.Scenario) Timeline {
	t := Timeline{End: data.Facts.Phases.End}
	lag := map[string]int64{}
	for _, s := range data.Samples {
		t.End = max(t.End, s.At)
		if s.Silent {
			continue
		}
		if s.Child != "" {
			t.state(s)
			lag[s.Child] = s.Lag
			total := int64(0)
			for _, l := range lag {
				total += l
			}
			t.Lag = append(t.Lag, point{s.At, total})
			continue
		}
		t.Produced = grow(t.Produced, s.At, s.Produced)
		t.OnWire = grow(t.OnWire, s.At, s.OnWire)
		t.OnTarget = grow(t.OnTarget, s.At, s.OnTarget)
	}
	faults := slices.Clone(data.Faults)
	slices.SortStableFunc(faults, func(a, b ledger.Fault) int { return cmp.Compare(a.Start, b.Start) })
	for i, f := range faults {
		to := f.End
		if to <= f.Start {
			to = f.Start + max(1, t.End/200)
		}
		t.End = max(t.End, to)
		t.Faults = append(t.Faults, band{f.Start, to, f.Name, i, f.Landed})
	}
	for _, o := range data.Operations {
		if o.Kind == ledger.KindAdmin && o.Expect != 0 {
			t.Faults = append(t.Faults, band{o.At, max(o.Done, o.At+max(1, t.End/200)), o.Action + " " + o.Target, len(t.Faults), true})
		}
	}
	for i := range t.States {
		if t.States[i].to == 0 {
			t.States[i].to = t.End
		}
	}
	return t
}

// grow adds a point to a count that never falls: samples of several nodes show the same total.
func grow(ps []point, at, value int64) []point {
	if n := len(ps); n > 0 {
		value = max(value, ps[n-1].value)
	}
	return append(ps, point{at, value})
}

func (t *Timeline) state(s ledger.Sample) {
	row := slices.Index(t.Children, s.Child)
	if row < 0 {
		row = len(t.Children)
		t.Children = append(t.Children, s.Child)
	}
	for i := len(t.States) - 1; i >= 0; i-- {
		b := &t.States[i]
		if b.row != row {
			continue
		}
		if b.word == s.State {
			return
		}
		b.to = s.At
		break
	}
	t.States = append(t.States, band{from: s.At, word: s.State, row: row})
}

// The drawing, in SVG user units.
const (
	width, left, right   = 960, 76, 12
	countHeight, lagHigh = 170, 70
	rowHeight, gap       = 20, 26
	top                  = 16
)

// SVG draws the timeline.
func (t Timeline) SVG() template.HTML {
	if t.End == 0 || len(t.Produced)+len(t.Lag) == 0 {
		return ""
	}
	d := drawing{t: t}
	lagTop := top + countHeight + gap
	statesTop := lagTop + lagHigh + gap
	faultsTop := statesTop + rowHeight*len(t.Children) + gap
	height := faultsTop + rowHeight*len(t.Faults) + 26
	fmt.Fprintf(&d.b, `<svg viewBox="0 0 %d %d" role="img" aria-label="timeline">`, width, height)
	for _, f := range t.Faults {
		fmt.Fprintf(&d.b, `<rect class="faultband" x="%.1f" y="%d" width="%.1f" height="%d"/>`, d.x(f.from), top, d.x(f.to)-d.x(f.from), faultsTop-top-gap/2)
	}
	d.axis(top, countHeight, largest(t.Produced, t.OnWire, t.OnTarget), "records")
	d.curve("produced", t.Produced, top, countHeight, largest(t.Produced, t.OnWire, t.OnTarget))
	d.curve("onwire", t.OnWire, top, countHeight, largest(t.Produced, t.OnWire, t.OnTarget))
	d.curve("ontarget", t.OnTarget, top, countHeight, largest(t.Produced, t.OnWire, t.OnTarget))
	d.axis(lagTop, lagHigh, largest(t.Lag), "lag")
	d.curve("lag", t.Lag, lagTop, lagHigh, largest(t.Lag))
	d.label(statesTop-6, "state of the link")
	for i, child := range t.Children {
		d.name(statesTop+i*rowHeight, child)
	}
	for _, s := range t.States {
		d.bar("state "+class(s.word), s, statesTop, s.word)
	}
	if len(t.Faults) > 0 {
		d.label(faultsTop-6, "faults and steps")
	}
	for _, f := range t.Faults {
		kind := "fault"
		if !f.landed {
			kind = "fault missed"
		}
		d.bar(kind, f, faultsTop, f.word)
	}
	d.ticks(height - 22)
	d.b.WriteString(`</svg>`)
	return template.HTML(d.b.String()) // every word in it went through template.HTMLEscapeString
}

// drawing writes SVG; every text that came from a run is escaped.
type drawing struct {
	b strings.Builder
	t Timeline
}

func (d *drawing) x(at int64) float64 {
	return left + float64(at)/float64(max(1, d.t.End))*(width-left-right)
}

func (d *drawing) axis(y, height int, most int64, word string) {
	fmt.Fprintf(&d.b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, y+height, width-right, y+height)
	fmt.Fprintf(&d.b, `<text class="tick" x="%d" y="%d" text-anchor="end">%s</text>`, left-6, y+10, thousands(most))
	fmt.Fprintf(&d.b, `<text class="tick" x="%d" y="%d" text-anchor="end">0</text>`, left-6, y+height)
	fmt.Fprintf(&d.b, `<text class="word" x="%d" y="%d" text-anchor="end">%s</text>`, left-6, y+height/2+4, word)
}

func (d *drawing) curve(name string, ps []point, y, height int, most int64) {
	if len(ps) == 0 {
		return
	}
	fmt.Fprintf(&d.b, `<polyline class="%s" points="`, name)
	for _, p := range ps {
		fmt.Fprintf(&d.b, "%.1f,%.1f ", d.x(p.at), float64(y+height)-float64(p.value)/float64(max(1, most))*float64(height-4))
	}
	d.b.WriteString(`"/>`)
}

func (d *drawing) label(y int, word string) {
	fmt.Fprintf(&d.b, `<text class="word" x="%d" y="%d">%s</text>`, left, y, word)
}

func (d *drawing) name(y int, word string) {
	fmt.Fprintf(&d.b, `<text class="tick" x="%d" y="%d" text-anchor="end">%s</text>`, left-6, y+14, template.HTMLEscapeString(short(word, 11)))
}

func (d *drawing) bar(kind string, b band, y int, word string) {
	x, w := d.x(b.from), max(2, d.x(b.to)-d.x(b.from))
	y += b.row * rowHeight
	text := template.HTMLEscapeString(word)
	fmt.Fprintf(&d.b, `<g><title>%s: %s to %s</title><rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="3"/>`,
		text, seconds(b.from), seconds(b.to), kind, x, y, w, rowHeight-4)
	switch room := int(w / 6.4); {
	case room >= 4:
		fmt.Fprintf(&d.b, `<text class="in" x="%.1f" y="%d">%s</text>`, x+4, y+12, template.HTMLEscapeString(short(word, room-1)))
	case kind != "state "+class(word) && x < width/2: // a fault too short for its name carries it behind
		fmt.Fprintf(&d.b, `<text class="tick" x="%.1f" y="%d">%s</text>`, x+w+4, y+12, text)
	case kind != "state "+class(word):
		fmt.Fprintf(&d.b, `<text class="tick" x="%.1f" y="%d" text-anchor="end">%s</text>`, x-4, y+12, text)
	}
	d.b.WriteString(`</g>`)
}

func (d *drawing) ticks(y int) {
	anchors := [9]string{0: "start", 8: "end"}
	for i, anchor := range anchors {
		at := d.t.End * int64(i) / 8
		fmt.Fprintf(&d.b, `<text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`, d.x(at), y+14, cmp.Or(anchor, "middle"), seconds(at))
	}
}

// class is how bad a state is: running, waiting, or in need of a person.
func class(state string) string {
	switch s := wire.LinkState(state); {
	case s == wire.Running:
		return "good"
	case s.NeedsFix():
		return "bad"
	}
	return "waiting"
}

func largest(curves ...[]point) int64 {
	most := int64(0)
	for _, c := range curves {
		for _, p := range c {
			most = max(most, p.value)
		}
	}
	return most
}

func seconds(ms int64) string {
	if ms >= 600_000 {
		return fmt.Sprintf("%.1f min", float64(ms)/60_000)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(1, n-1)]) + "…"
	}
	return s
}
