package invariant

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"narad.example/harness/ledger"
)

// looks compares what a link and the source's metrics showed at the moments that the scenario names. A number is compared, a word must be one
// of those that are joined by "or".
func looks(s *ledger.Scenario) *finding {
	f := &finding{promise: "a link shows at a moment what the scenario expects"}
	if missing := s.Lacks(ledger.FactsName); missing != "" {
		return f.lack("%s", missing)
	}
	for _, l := range s.Facts.Looks {
		holds := slices.Contains(strings.Split(l.Want, " or "), l.Got)
		if strings.ContainsAny(l.Want, "<>=") {
			value, err := strconv.ParseFloat(l.Got, 64)
			if holds = err == nil; holds {
				holds, err = compares(value, l.Want)
			}
			if err != nil && l.Got != "" {
				f.lack("%s of %s, %s: %v", l.Member, l.Child, l.Step, err)
				continue
			}
		}
		switch {
		case l.Got == "":
			f.breaks(l.Step, "%s of %s was not shown at %d ms (%s), expected %s", l.Member, l.Child, l.At, l.Step, l.Want)
		case !holds:
			f.breaks(l.Step, "%s of %s was %s at %d ms (%s), expected %s", l.Member, l.Child, l.Got, l.At, l.Step, l.Want)
		}
	}
	f.looked = fmt.Sprintf("%d members looked at", len(s.Facts.Looks))
	return f
}

// logLines counts lines of the nodes' logs.
func logLines(s *ledger.Scenario) *finding {
	f := &finding{promise: "the nodes log what the scenario expects"}
	if missing := s.Lacks(ledger.FactsName); missing != "" {
		return f.lack("%s", missing)
	}
	want := s.Facts.Expect.Logs
	f.looked = fmt.Sprintf("%d kinds of lines counted", len(want))
	if len(want) == 0 {
		return f
	}
	if !s.Facts.LogsRead {
		return f.lack("the log of some node was not read")
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, ledger.NodesName, "*.log"))
	if err != nil || len(files) == 0 {
		return f.lack("no node's log is in the run folder")
	}
	found := make([]int, len(want))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return f.lack("%v", err)
		}
		node := strings.TrimSuffix(filepath.Base(file), ".log")
		for line := range strings.SplitSeq(string(data), "\n") {
			var members map[string]any
			if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &members) != nil {
				continue
			}
			for i := range want {
				if isLine(s, &want[i], node, members) {
					found[i]++
				}
			}
		}
	}
	for i, w := range want {
		what := fmt.Sprintf("%s %q %v", w.Level, w.Message, w.With)
		f.compare(what, found[i], w.Is, "lines")
	}
	return f
}

// anyValue of a log line's member asks that it is there.
const anyValue = "*"

func isLine(s *ledger.Scenario, want *ledger.LogLines, node string, line map[string]any) bool {
	if line["msg"] != want.Message || (want.On != "" && want.On != node) {
		return false
	}
	if level, _ := line["level"].(string); want.Level != "" && !strings.EqualFold(level, want.Level) {
		return false
	}
	for name, value := range want.With {
		if has, ok := line[name]; !ok || value != anyValue && fmt.Sprint(has) != value {
			return false
		}
	}
	if want.From == 0 && want.Until == 0 {
		return true
	}
	words, _ := line["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, words)
	return err == nil && s.Facts.Epoch != 0 && within(s, at.UnixMilli()-s.Facts.Epoch, want.From, want.Until)
}

// within tells whether a time of the ledger is in a span of the load's time as the scenario plans it, the end of which is open when it is 0.
func within(s *ledger.Scenario, at, from, until int64) bool {
	at -= s.Facts.Phases.LoadStart
	return at >= s.Facts.Planned(from) && (until == 0 || at < s.Facts.Planned(until))
}

// asked counts requests that began at the tap or the fake.
func asked(s *ledger.Scenario) *finding {
	f := &finding{promise: "the target is asked as the scenario expects"}
	if missing := s.Lacks(ledger.FactsName); missing != "" {
		return f.lack("%s", missing)
	}
	want := s.Facts.Expect.Requests
	f.looked = fmt.Sprintf("%d kinds of requests counted", len(want))
	if len(want) > 0 && (!s.Facts.WireRead || s.Lacks(ledger.WireName) != "") {
		return f.lack("the wire was not read")
	}
	for _, w := range want {
		n := 0
		for i := range s.Wire {
			r := &s.Wire[i]
			if !isAsked(r, &w) || !within(s, r.At, w.From, w.Until) {
				continue
			}
			fits, err := ofSize(r, &w)
			if err != nil {
				return f.lack("%v", err)
			}
			if fits {
				n++
			}
		}
		what := fmt.Sprintf("%s %d %s %s %s %s %s from %d to %d ms", w.Route, w.Status, w.Outcome, w.Answer, w.Topic, sized("records", w.Records), sized("bytes", w.Bytes), w.From, w.Until)
		f.compare(what, n, w.Is, "requests")
	}
	return f
}

func isAsked(r *ledger.WireRequest, w *ledger.Asked) bool {
	return (w.Route == "any" || w.Route == routeOf(r)) && (w.Status == 0 || w.Status == r.Status) &&
		(w.Outcome == "" || w.Outcome == r.Outcome) && (w.Topic == "" || w.Topic == r.Topic) && (w.Answer == "" || r.Sent == (w.Answer == "whole"))
}

// ofSize compares how many records a request has and how many bytes its body.
func ofSize(r *ledger.WireRequest, w *ledger.Asked) (bool, error) {
	for _, one := range []struct {
		has  int
		want string
	}{{len(r.Records), w.Records}, {r.Bytes, w.Bytes}} {
		if one.want == "" {
			continue
		}
		if holds, err := compares(float64(one.has), one.want); err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

func sized(what, want string) string {
	if want == "" {
		return ""
	}
	return what + " " + want
}

// produces counts records by the answer to their produce.
func produces(s *ledger.Scenario) *finding {
	f := &finding{promise: "the source answers produces as the scenario expects"}
	if missing := s.Lacks(ledger.FactsName, ledger.OperationsName); missing != "" {
		return f.lack("%s", missing)
	}
	want := s.Facts.Expect.Produces
	f.looked = fmt.Sprintf("%d kinds of answers counted", len(want))
	for _, w := range want {
		n := 0
		for i := range s.Operations {
			o := &s.Operations[i]
			if o.Kind == ledger.KindProduce && o.Status == w.Status && (w.On == "" || w.On == o.Node) && within(s, o.At, w.From, w.Until) {
				n++
			}
		}
		f.compare(fmt.Sprintf("status %d %s from %d to %d ms", w.Status, w.On, w.From, w.Until), n, w.Is, "records")
	}
	return f
}

func (f *finding) compare(what string, n int, is, of string) {
	holds, err := compares(float64(n), is)
	switch {
	case err != nil:
		f.lack("%s: %v", what, err)
	case !holds:
		f.breaks(what, "%d %s of %s, expected %s", n, of, strings.Join(strings.Fields(what), " "), is)
	}
}

// routeOf names a request as a scenario does.
func routeOf(r *ledger.WireRequest) string {
	path, _, _ := strings.Cut(r.Path, "?")
	switch {
	case r.Produces():
		return "chunk"
	case strings.HasSuffix(path, "/produce/batch"):
		return "probe"
	case strings.HasSuffix(path, "/children"):
		return "children"
	case path == "/v1/users":
		return "users"
	case r.Topic != "" && strings.HasSuffix(path, "/topics/"+r.Topic):
		return "topic"
	}
	return "other"
}
