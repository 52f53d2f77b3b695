package scenarios

import (
	"cmp"
	"fmt"
	"time"
)

// Names that the defaults give.
const (
	DefaultRemote = "b"
	defaultDrain  = Duration(60 * time.Second)
	defaultDown   = Duration(time.Second) // of a node that is restarted
)

// fill puts the defaults in, so that the common case is short and nothing after Load has to know them.
func fill(s *Scenario) {
	s.Source.Nodes = cmp.Or(s.Source.Nodes, 1)
	if s.Target.Fake == nil {
		s.Target.Nodes = cmp.Or(s.Target.Nodes, 1)
	} else {
		fillFake(s.Target.Fake)
	}
	for name, t := range s.Topics {
		t.Partitions = cmp.Or(t.Partitions, 3)
		s.Topics[name] = t
	}
	for i := range s.Links {
		l := &s.Links[i]
		l.Remote = cmp.Or(l.Remote, DefaultRemote)
		l.Topic = cmp.Or(l.Topic, l.Parent)
		l.Lanes = cmp.Or(l.Lanes, 4)
		l.From = cmp.Or(l.From, "attach")
		l.Attach = cmp.Or(l.Attach, "before")
	}
	if len(s.Remotes) == 0 {
		s.Remotes = map[string]Remote{DefaultRemote: {}}
	}
	for i := range s.Load {
		fillLoad(&s.Load[i], i)
	}
	for i := range s.Faults {
		if t := s.Faults[i].Toxic; t != nil && t.Type == "slow_close" {
			t.Stream = cmp.Or(t.Stream, "downstream")
		} else if t != nil {
			t.Stream = cmp.Or(t.Stream, "upstream")
		}
		if f := &s.Faults[i]; f.Restart != "" || f.Transfer != "" || f.Rolling != "" || f.Upgrade != "" {
			f.For = cmp.Or(f.For, defaultDown)
		}
		if f := &s.Faults[i]; f.Mute != "" {
			f.Carries = cmp.Or(f.Carries, "rpc")
		}
		if f := &s.Faults[i]; f.Parts() || f.Paces() {
			f.Carries = cmp.Or(f.Carries, "all")
		}
		if d := s.Faults[i].Disk; d != nil {
			d.Files = cmp.Or(d.Files, diskFaults[d.Fault].standard)
		}
	}
	s.Expect.Drained = cmp.Or(s.Expect.Drained, defaultDrain)
	for i := range s.Steps {
		st := &s.Steps[i]
		a := actions[st.Action]
		st.Expect = cmp.Or(st.Expect, a.success)
		if st.Remote == "" && a.remote {
			st.Remote = DefaultRemote
		}
	}
}

func fillFake(f *Fake) {
	for i := range f.Steps {
		st := &f.Steps[i]
		if !st.Always {
			st.Times = cmp.Or(st.Times, 1)
		}
		st.When.Route = cmp.Or(st.When.Route, "produce")
		st.Name = cmp.Or(st.Name, fmt.Sprintf("%d %s", i+1, st.Answer))
	}
}

func fillLoad(l *Traffic, i int) {
	l.Name = cmp.Or(l.Name, fmt.Sprintf("load-%d", i+1))
	l.Batch = cmp.Or(l.Batch, 1)
	if l.Payload.JSON+l.Payload.Text+l.Payload.Binary == 0 {
		l.Payload.JSON = 100
	}
	if l.Payload.Size.Max == 0 {
		l.Payload.Size = Sizes{200, 1024}
	}
}

// Length is how long a load runs at least: its for, or what its rate or every needs for its count. It is 0 when the speed of the source
// decides.
func (l *Traffic) Length() time.Duration {
	switch {
	case l.For > 0:
		return l.For.D()
	case l.Rate > 0:
		return time.Duration(l.Count) * time.Second / time.Duration(l.Rate)
	}
	return time.Duration(l.Count) * l.Every.D() / time.Duration(max(1, l.Batch))
}
