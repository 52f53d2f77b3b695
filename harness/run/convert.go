package run

import (
	"cmp"
	"maps"
	"slices"

	"narad.example/fakes"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// Script is the fake's script of a scenario, nil when its target is real. It returns an error for what the language cannot check.
func Script(s *scenarios.Scenario) (*fakes.Script, error) {
	f := s.Target.Fake
	if f == nil {
		return nil, nil // no fake is an answer of its own
	}
	out := &fakes.Script{}
	for _, topic := range targetTopics(s) {
		out.Topics = append(out.Topics, fakes.ScriptTopic{Name: topic.name, Partitions: topic.partitions})
	}
	for _, st := range f.Steps {
		times := st.Times
		if st.Always {
			times = fakes.Always
		}
		out.Steps = append(out.Steps, fakes.Step{
			Name: st.Name, Times: times,
			When: fakes.When{Route: st.When.Route, Nth: st.When.Nth, Topic: st.When.Topic, Credential: st.When.Credential, Record: st.When.Record},
			Answer: fakes.Reply{
				Name: st.Answer, Status: st.With.Status, RetryAfter: st.With.RetryAfter, Index: st.With.Index,
				DelayMS: st.With.Delay.D().Milliseconds(), Bytes: int(st.With.Bytes), Headers: st.With.Headers,
			},
		})
	}
	return out, out.Check()
}

type targetTopic struct {
	name       string
	partitions int
}

// targetTopics are the topics that the links need on the target, with the partitions of the parent.
func targetTopics(s *scenarios.Scenario) []targetTopic {
	var out []targetTopic
	for _, l := range s.Links {
		if !slices.ContainsFunc(out, func(t targetTopic) bool { return t.name == l.Topic }) {
			out = append(out, targetTopic{l.Topic, s.Topics[l.Parent].Partitions})
		}
	}
	return out
}

func loads(s *scenarios.Scenario) []workload.Load {
	var out []workload.Load
	for _, l := range s.Load {
		out = append(out, workload.Load{
			Name: l.Name, Topic: l.Topic, At: l.At.D(), Rate: int(l.Rate), Every: l.Every.D(), For: l.For.D(), Count: l.Count, Keys: l.Keys, NastyKeys: l.NastyKeys,
			JSON: int(l.Payload.JSON), Text: int(l.Payload.Text), MinSize: int(l.Payload.Size.Min), MaxSize: int(l.Payload.Size.Max), Batch: l.Batch,
		})
	}
	return out
}

func sides(s *scenarios.Scenario) (source, target cluster.Side) {
	return cluster.Side{Nodes: s.Source.Nodes, Spares: s.Source.Spares, Older: s.Source.Older, Config: s.Source.Config},
		cluster.Side{Nodes: s.Target.Nodes, Older: s.Target.Older, Config: s.Target.Config}
}

func expectation(s *scenarios.Scenario) ledger.Expect {
	out := ledger.Expect{States: s.Expect.States, Never: s.Expect.Never, Metrics: s.Expect.Metrics, Waits: s.Expect.Waits}
	for _, l := range s.Expect.Logs {
		out.Logs = append(out.Logs, ledger.LogLines{
			Message: l.Message, Level: l.Level, On: l.On, With: l.With, From: l.From.D().Milliseconds(), Until: l.Until.D().Milliseconds(), Is: l.Is,
		})
	}
	for _, r := range s.Expect.Requests {
		out.Requests = append(out.Requests, ledger.Asked{
			Route: r.Route, Status: r.Status, Outcome: r.Outcome, Answer: r.Answer, Topic: r.Topic, Records: r.Records, Bytes: r.Bytes, From: r.From.D().Milliseconds(), Until: r.Until.D().Milliseconds(),
			Is: r.Is,
		})
	}
	for _, r := range s.Expect.Produces {
		out.Produces = append(out.Produces, ledger.Produced{
			Status: r.Status, On: r.On, From: r.From.D().Milliseconds(), Until: r.Until.D().Milliseconds(), Is: r.Is,
		})
	}
	out.Shapes, out.Inconclusive = shapesOf(s), s.Expect.Inconclusive
	return out
}

// shapesOf are the shapes of which the loads make dozens, so that a run without one of them is no chance.
func shapesOf(s *scenarios.Scenario) []string {
	const dozens = 36
	expected := map[string]float64{}
	for i := range s.Load {
		l := &s.Load[i]
		records := float64(l.Count)
		if l.For > 0 {
			records = float64(l.Rate) * l.For.D().Seconds()
			if l.Every > 0 {
				records = float64(l.Batch) * float64(l.For) / float64(l.Every)
			}
		}
		expected[workload.ShapeJSON] += records * float64(l.Payload.JSON) / 100
		expected[workload.ShapeText] += records * float64(l.Payload.Text) / 100
		expected[workload.ShapeBinary] += records * float64(l.Payload.Binary) / 100
	}
	var out []string
	for _, shape := range slices.Sorted(maps.Keys(expected)) {
		if expected[shape] >= dozens {
			out = append(out, shape)
		}
	}
	return out
}

func relaxed(s *scenarios.Scenario) []ledger.Relax {
	var out []ledger.Relax
	for _, r := range s.Relax {
		out = append(out, ledger.Relax{Judge: r.Judge, Reason: r.Reason})
	}
	return out
}

// firstWords cuts a text for a message.
func firstWords(text string) string { return cmp.Or(text[:min(len(text), 200)], "no text") }
