package explore

import (
	"maps"
	"slices"

	"narad.example/scenarios"
)

// change makes a scenario smaller in one place. It reports whether there was anything to change.
type change func(s *scenarios.Scenario) bool

// changes are all single changes to s, the ones that take most away first. Each is applied to a copy of s and to nothing else.
func changes(s *scenarios.Scenario) []change {
	var out []change
	for i := range s.Links {
		out = append(out, func(s *scenarios.Scenario) bool { return withoutLink(s, i) })
	}
	for i := range s.Faults {
		out = append(out, func(s *scenarios.Scenario) bool { return withoutFault(s, i) })
	}
	for i := range s.Steps {
		out = append(out, func(s *scenarios.Scenario) bool { return withoutStep(s, i) })
	}
	if s.Target.Fake != nil {
		for i := range s.Target.Fake.Steps {
			out = append(out, func(s *scenarios.Scenario) bool {
				s.Target.Fake.Steps = slices.Delete(s.Target.Fake.Steps, i, i+1)
				return true
			})
		}
	}
	out = append(out, earlier, shorter, slower, withoutConfig, withoutLimits)
	for i := range s.Links {
		out = append(out, plainerLink(i)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Topics)) {
		out = append(out, func(s *scenarios.Scenario) bool {
			was := s.Topics[name].Partitions
			s.Topics[name] = scenarios.Topic{Partitions: 3}
			return was != 3
		})
	}
	for i := range s.Load {
		out = append(out, plainerLoad(i)...)
	}
	for i := range s.Faults {
		out = append(out, plainerFault(i)...)
	}
	if s.Target.Fake != nil {
		for i := range s.Target.Fake.Steps {
			out = append(out, plainerAnswer(i)...)
		}
	}
	return out
}

// set makes a number the smaller one, if it is larger.
func set[T int | scenarios.Duration | scenarios.Rate](field *T, to T) bool {
	was := *field
	*field = min(was, to)
	return *field != was
}

func withoutLink(s *scenarios.Scenario, i int) bool {
	if len(s.Links) == 1 {
		return false
	}
	gone := s.Links[i]
	s.Links = slices.Delete(s.Links, i, i+1)
	s.Steps = slices.DeleteFunc(s.Steps, func(st scenarios.Step) bool { return st.Link == gone.Child })
	if !slices.ContainsFunc(s.Links, func(l scenarios.Link) bool { return l.Parent == gone.Parent }) {
		delete(s.Topics, gone.Parent)
		s.Load = slices.DeleteFunc(s.Load, func(l scenarios.Traffic) bool { return l.Topic == gone.Parent })
	}
	return true
}

// withoutFault takes a fault away, and the start that ends it.
func withoutFault(s *scenarios.Scenario, i int) bool {
	gone := s.Faults[i]
	s.Faults = slices.Delete(s.Faults, i, i+1)
	if gone.For == 0 && gone.Start == "" {
		next := slices.IndexFunc(s.Faults[i:], func(f scenarios.Fault) bool { return f.Start == gone.Node() })
		if next >= 0 {
			s.Faults = slices.Delete(s.Faults, i+next, i+next+1)
		}
	}
	return gone.Start == "" // a start goes with its kill only
}

// withoutStep takes a step away with the one that belongs to it: the attach after a detach, the resume after a pause, the good password after the
// other one. A link that
// only a step attached is attached before the load instead.
func withoutStep(s *scenarios.Scenario, i int) bool {
	gone := s.Steps[i]
	s.Steps = slices.Delete(s.Steps, i, i+1)
	pair := map[string]string{"detach": "attach", "pause": "resume", "target_password": "target_password"}[gone.Action]
	if pair != "" {
		next := slices.IndexFunc(s.Steps[i:], func(st scenarios.Step) bool { return st.Action == pair && st.Link == gone.Link })
		if next >= 0 {
			s.Steps = slices.Delete(s.Steps, i+next, i+next+1)
		}
	}
	if gone.Action == "attach" {
		for j := range s.Links {
			if l := &s.Links[j]; l.Child == gone.Link && l.Attach == "step" {
				l.Attach = "before"
				return true
			}
		}
		return false // it belongs to a detach
	}
	return gone.To != "recorded" && gone.Action != "resume"
}

// tail is the traffic that stays after the last thing that happens.
const tail = 4 * second

// earlier moves everything that happens to as soon after the start as the first of it may be, so that fewer records go before.
func earlier(s *scenarios.Scenario) bool {
	var times []*scenarios.Duration
	for i := range s.Faults {
		times = append(times, &s.Faults[i].At)
	}
	for i := range s.Steps {
		times = append(times, &s.Steps[i].At)
	}
	if len(times) == 0 {
		return false
	}
	first := *times[0]
	for _, at := range times {
		first = min(first, *at)
	}
	by := first - head
	if by <= 0 {
		return false
	}
	for _, at := range times {
		*at -= by
	}
	return true
}

// head is the traffic before the first thing that happens.
const head = 5 * second

// shorter ends the load soon after the last fault or step.
func shorter(s *scenarios.Scenario) bool {
	end := 8 * second
	for _, f := range s.Faults {
		end = max(end, f.At+f.For+tail)
	}
	for _, st := range s.Steps {
		end = max(end, st.At+tail)
	}
	changed := false
	for i := range s.Load {
		changed = set(&s.Load[i].For, end) || changed
	}
	return changed
}

func slower(s *scenarios.Scenario) bool {
	changed := false
	for i := range s.Load {
		l := &s.Load[i]
		changed = set(&l.Rate, max(l.Rate/2, 1)) || changed
		l.Batch = min(l.Batch, int(l.Rate))
	}
	return changed
}

func withoutConfig(s *scenarios.Scenario) bool {
	had := len(s.Source.Config) > 0
	s.Source.Config = nil
	return had
}

func withoutLimits(s *scenarios.Scenario) bool {
	plain := scenarios.Limits{RequestTimeoutMS: 5000}
	had := s.Remotes[remote].Limits != plain
	s.Remotes[remote] = scenarios.Remote{Limits: plain}
	return had
}

func plainerLink(i int) []change {
	on := func(f func(l *scenarios.Link) bool) change {
		return func(s *scenarios.Scenario) bool { return f(&s.Links[i]) }
	}
	return []change{
		on(func(l *scenarios.Link) bool { return set(&l.Lanes, 1) }),
		on(func(l *scenarios.Link) bool { return set(&l.Lanes, max(l.Lanes/2, 1)) }),
		on(func(l *scenarios.Link) bool { return set(&l.Lanes, max(l.Lanes-1, 1)) }),
		on(func(l *scenarios.Link) bool { return set(&l.Delay, 0) }),
		on(func(l *scenarios.Link) bool {
			was := l.Attach
			if was == "after" {
				l.Attach = "before"
			}
			return l.Attach != was
		}),
		on(func(l *scenarios.Link) bool {
			was := l.From
			l.From = "attach"
			return was != l.From
		}),
	}
}

func plainerLoad(i int) []change {
	on := func(f func(l *scenarios.Traffic) bool) change {
		return func(s *scenarios.Scenario) bool { return f(&s.Load[i]) }
	}
	return []change{
		on(func(l *scenarios.Traffic) bool { return set(&l.Keys, 1) }),
		on(func(l *scenarios.Traffic) bool { return set(&l.Keys, max(l.Keys/2, 1)) }),
		on(func(l *scenarios.Traffic) bool {
			was := l.NastyKeys
			l.NastyKeys = false
			return was
		}),
		on(func(l *scenarios.Traffic) bool {
			was := l.Payload
			l.Payload = scenarios.Payload{JSON: 100, Size: scenarios.Sizes{Min: 100, Max: 100}}
			return was != l.Payload
		}),
		on(func(l *scenarios.Traffic) bool {
			if l.NastyKeys {
				return false
			}
			return set(&l.Batch, 1)
		}),
	}
}

func plainerFault(i int) []change {
	on := func(f func(f *scenarios.Fault) bool) change {
		return func(s *scenarios.Scenario) bool { return f(&s.Faults[i]) }
	}
	return []change{
		on(func(f *scenarios.Fault) bool {
			had := f.Flap != nil
			f.Flap = nil
			return had
		}),
		on(func(f *scenarios.Fault) bool {
			if f.For == 0 || f.Flap != nil {
				return false
			}
			return set(&f.For, max(whole(f.For/2), 2*second))
		}),
		on(func(f *scenarios.Fault) bool {
			return f.Disk != nil && set(&f.Disk.Delay, max(whole(f.Disk.Delay/2), tenth))
		}),
	}
}

func plainerAnswer(i int) []change {
	on := func(f func(st *scenarios.FakeStep) bool) change {
		return func(s *scenarios.Scenario) bool { return f(&s.Target.Fake.Steps[i]) }
	}
	return []change{
		on(func(st *scenarios.FakeStep) bool { return set(&st.Times, 1) }),
		on(func(st *scenarios.FakeStep) bool { return set(&st.With.Delay, 0) }),
		on(func(st *scenarios.FakeStep) bool {
			was := st.With.RetryAfter
			st.With.RetryAfter = ""
			return was != ""
		}),
	}
}
