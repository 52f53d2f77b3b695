package explore

import (
	"context"

	"narad.example/scenarios"
)

// Fails runs a scenario, more than once where it may fail now and then, and tells whether it still fails by the judge that is asked for.
type Fails func(ctx context.Context, s *scenarios.Scenario) (bool, error)

// Shrunk is what a shrinking came to.
type Shrunk struct {
	Scenario *scenarios.Scenario
	Tried    int  // scenarios that were run
	Kept     int  // changes that still fail
	Smallest bool // no single change is left that still fails; false when time or tries ran out
}

// Shrink makes s smaller, one change at a time, as long as it still fails. It tries most scenarios at most and ends early with ctx; what it has by
// then is returned. A change that would make the scenario invalid is never run. The error is the harness's.
func Shrink(ctx context.Context, s *scenarios.Scenario, most int, fails Fails) (Shrunk, error) {
	out := Shrunk{Scenario: s}
	for again := true; again; {
		again = false
		for i := 0; i < len(changes(out.Scenario)); {
			if out.Tried >= most || over(ctx) {
				return out, nil
			}
			smaller := apply(out.Scenario, i)
			if smaller == nil {
				i++
				continue
			}
			out.Tried++
			failed, err := fails(ctx, smaller)
			if err != nil {
				return out, err
			}
			if !failed {
				i++
				continue
			}
			// What stood behind the removed thing has moved up to i.
			out.Scenario, again = smaller, true
			out.Kept++
		}
	}
	out.Smallest = true
	return out, nil
}

func over(ctx context.Context) bool { return ctx.Err() != nil }

// apply makes change i on a copy, nil when there is nothing to change or the result is no valid scenario.
func apply(s *scenarios.Scenario, i int) *scenarios.Scenario {
	if smaller, err := clone(s); err == nil && changes(smaller)[i](smaller) {
		if valid, verr := clone(smaller); verr == nil {
			return valid
		}
	}
	return nil
}

// clone writes and reads a scenario, which copies it and checks it.
func clone(s *scenarios.Scenario) (*scenarios.Scenario, error) {
	text, err := scenarios.Marshal(s)
	if err != nil {
		return nil, err
	}
	return scenarios.Parse(s.File, text)
}
