package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"narad.example/harness/ledger"
)

// metrics compares, as the scenario asks, the sum of a metric over all nodes and series at the end. A counter is summed across restarts; a
// metric of which no series was seen is 0.
func metrics(s *ledger.Scenario) *finding {
	f := &finding{promise: "metrics are as the scenario expects"}
	if missing := s.Lacks(ledger.FactsName, ledger.LinksName); missing != "" {
		return f.lack("%s", missing)
	}
	var looked []string
	for _, name := range slices.Sorted(maps.Keys(s.Facts.Expect.Metrics)) {
		want := s.Facts.Expect.Metrics[name]
		value, sampled := counter(s, name, "", "")
		if !strings.HasSuffix(name, "_total") {
			value = gauge(s, name)
		}
		holds, err := compares(value, want)
		switch {
		case !sampled:
			f.lack("no node's metrics were read")
		case err != nil:
			f.lack("%s: %v", name, err)
		case !holds:
			f.breaks(name, "%s is %v, expected %s", name, value, want)
		}
		looked = append(looked, fmt.Sprintf("%s %s (%v)", name, want, value))
	}
	f.looked = strings.Join(looked, ", ")
	if len(looked) == 0 {
		f.looked = "the scenario asks for none"
	}
	return f
}

// gauge sums the last value of every series.
func gauge(s *ledger.Scenario, name string) float64 {
	last := map[string]float64{}
	for _, sm := range s.Samples {
		if sm.Child != "" || sm.Silent {
			continue
		}
		for series := range last {
			if strings.HasPrefix(series, sm.Node+" ") {
				delete(last, series) // a series that is gone counts no more
			}
		}
		for series, v := range sm.Metrics {
			if isSeries(series, name, "", "") {
				last[sm.Node+" "+series] = v
			}
		}
	}
	var sum float64
	for _, v := range last {
		sum += v
	}
	return sum
}

func compares(value float64, want string) (bool, error) {
	op := strings.TrimRight(want, "0123456789. ")
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(want, op)), 64)
	if err != nil {
		return false, fmt.Errorf("%q is no comparison", want)
	}
	switch op {
	case ">":
		return value > number, nil
	case ">=":
		return value >= number, nil
	case "<":
		return value < number, nil
	case "<=":
		return value <= number, nil
	case "==":
		return value == number, nil
	}
	return false, fmt.Errorf("%q is no comparison", want)
}
