package run

import (
	"context"
	"net/http"

	"narad.example/harness/cluster"
	"narad.example/harness/workload"
	"narad.example/narad/client"
)

// producer is a source node as the workload sees it.
type producer struct{ node cluster.Node }

func (p producer) Name() string { return p.node.Name() }

func (p producer) Produce(ctx context.Context, topic string, r workload.Record) workload.Answer {
	return answer(p.node.Client().Produce(ctx, topic, r.Payload, client.ProduceOptions{Key: string(r.Key)}))
}

func (p producer) Batch(ctx context.Context, topic string, body []byte) workload.Answer {
	return answer(p.node.Client().ProduceBody(ctx, topic, "", body, ""))
}

func answer(err error) workload.Answer {
	a := answerOf(err, http.StatusAccepted)
	return workload.Answer{Status: a.Status, Text: a.Text, RequestID: a.RequestID, Problem: a.Problem}
}
