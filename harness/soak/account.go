package soak

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// mostRecoveries is how many of a round's recoveries its row keeps.
const mostRecoveries = 3

// rowOf is what is kept of a round: its result, and from its folder the worst lag and the slowest recoveries. A folder that lacks them leaves them out.
func rowOf(number int, s *scenarios.Scenario, r *ledger.ScenarioRun, dir string) ledger.SoakRound {
	row := ledger.SoakRound{Number: number, Clusters: clusters(s), Verdict: r.Verdict, Counts: r.Counts, Faults: map[string]int{}}
	if r.Verdict != ledger.Pass {
		row.Says = saysOf(r)
	}
	for _, f := range r.Faults {
		if f.Landed {
			row.Faults[f.Kind]++
		}
	}
	samples, err := ledger.Read[ledger.Sample](filepath.Join(dir, ledger.LinksName))
	facts, ferr := ledger.ReadJSON[ledger.Facts](filepath.Join(dir, ledger.FactsName))
	if err != nil || ferr != nil {
		return row
	}
	row.WorstLag = worstLag(samples)
	row.Recoveries = recoveries(number, r.Faults, samples, &facts.Phases)
	return row
}

// clusters names a round's clusters.
func clusters(s *scenarios.Scenario) string {
	if s.Target.Fake != nil {
		return fmt.Sprintf("%d to a fake", s.Source.Nodes)
	}
	return fmt.Sprintf("%d to %d", s.Source.Nodes, s.Target.Nodes)
}

// saysOf is why a round is no pass: of a violation the judge, else the first that proved nothing.
func saysOf(r *ledger.ScenarioRun) string {
	for _, want := range []string{ledger.Fail, ledger.Inconclusive} {
		for _, v := range r.Invariants {
			if v.Verdict == want {
				return v.Name + ": " + v.Says
			}
		}
	}
	return r.Says
}

// worstLag is the largest lag of all links together.
func worstLag(samples []ledger.Sample) (worst int64) {
	lag := map[string]int64{}
	var total int64
	for i := range samples {
		if s := &samples[i]; s.Child != "" && !s.Silent {
			total += s.Lag - lag[s.Child]
			lag[s.Child] = s.Lag
			worst = max(worst, total)
		}
	}
	return worst
}

// recoveries are a round's slowest ones: from the end of each fault until every link that is listed afterwards showed itself running, or paused, which
// an admin asked for; and from the healing until drained.
func recoveries(round int, faults []ledger.Fault, samples []ledger.Sample, phases *ledger.Phases) []ledger.Recovery {
	var out []ledger.Recovery
	for i := range faults {
		if f := &faults[i]; f.End > 0 {
			out = append(out, ledger.Recovery{Round: round, Fault: f.Name, Kind: f.Kind, MS: recovery(f.End, samples, phases.End)})
		}
	}
	if phases.Healed > 0 && phases.Drained > phases.Healed {
		out = append(out, ledger.Recovery{Round: round, Fault: "from the healing until drained", Kind: "drain", MS: phases.Drained - phases.Healed})
	}
	slices.SortStableFunc(out, slowerFirst)
	return out[:min(len(out), mostRecoveries)]
}

func recovery(end int64, samples []ledger.Sample, last int64) int64 {
	sound := map[string]int64{} // by child, when it was; last until then
	for i := range samples {
		s := &samples[i]
		if s.Child == "" || s.At < end {
			continue
		}
		at, seen := sound[s.Child]
		switch well := !s.Silent && (s.State == string(wire.Running) || s.State == string(wire.Paused)); {
		case well && (!seen || at == last):
			sound[s.Child] = s.At
		case !seen:
			sound[s.Child] = last
		}
	}
	var slow int64
	for _, at := range sound {
		slow = max(slow, at-end)
	}
	return slow
}

func slowerFirst(a, b ledger.Recovery) int { return cmp.Compare(b.MS, a.MS) }

// slowest are the slowest recoveries of all rounds.
func slowest(rounds []ledger.SoakRound) []ledger.Recovery {
	var all []ledger.Recovery
	for i := range rounds {
		all = append(all, rounds[i].Recoveries...)
	}
	slices.SortStableFunc(all, slowerFirst)
	return all[:min(len(all), slowestKept)]
}

// totals adds rounds up. One that was cut counts what it did and is neither passed nor inconclusive.
func totals(rounds []ledger.SoakRound) ledger.SoakTotals {
	t := ledger.SoakTotals{Rounds: len(rounds), Faults: map[string]int{}}
	for i := range rounds {
		r := &rounds[i]
		switch {
		case r.Cut:
		case r.Verdict == ledger.Pass:
			t.Passed++
		case r.Verdict == ledger.Inconclusive:
			t.Inconclusive++
		}
		t.Acknowledged += r.Counts.Acknowledged
		t.Replicated += r.Counts.OnWire - r.Counts.Duplicates
		t.Duplicates += r.Counts.Duplicates
		t.Resent += r.Counts.Resent
		for kind, n := range r.Faults {
			t.Faults[kind] += n
		}
		t.WorstLag = max(t.WorstLag, r.WorstLag)
		if len(r.Recoveries) > 0 && r.Recoveries[0].MS > t.Slowest.MS {
			t.Slowest = r.Recoveries[0]
		}
	}
	return t
}

// hours adds rounds up by the hour in which they began. An hour in which none did has no row.
func hours(rounds []ledger.SoakRound) []ledger.SoakHour {
	out := []ledger.SoakHour{}
	hourOf := func(r *ledger.SoakRound) int { return int(r.AtMS/time.Hour.Milliseconds()) + 1 }
	for from := 0; from < len(rounds); {
		to, hour := from, hourOf(&rounds[from])
		for to < len(rounds) && hourOf(&rounds[to]) == hour {
			to++
		}
		out = append(out, ledger.SoakHour{Hour: hour, SoakTotals: totals(rounds[from:to])})
		from = to
	}
	return out
}
