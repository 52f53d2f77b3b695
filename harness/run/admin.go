package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/harness/workload"
	"narad.example/narad/client"
)

// reply is what came back of one request.
type reply struct {
	Status     int // 0 when no answer came
	Text       string
	RetryAfter time.Duration
	RequestID  string
	Problem    string // the class of a transport failure; its text may name addresses
}

// request is one admin request with what the ledger remembers of it.
type request struct {
	do      func(ctx context.Context, c *client.Client) error
	ok      int                     // the status of its success
	action  string                  // the audit event (api.md), "" when the request has none
	target  string                  // what it is about
	expect  int                     // of a scenario's step
	says    string                  // of a scenario's step
	answer  any                     // where do puts the body of a success that the ledger keeps, nil for none
	changed func() (names []string) // of an answer that names several things that it changed, else nil
}

// answerOf reads what a client's method returned; ok is the status that stands for no error.
func answerOf(err error, ok int) reply {
	var refused *client.Error
	var timeout net.Error
	switch {
	case err == nil:
		return reply{Status: ok}
	case errors.As(err, &refused):
		return reply{Status: refused.Status, Text: refused.Text, RetryAfter: refused.RetryAfter, RequestID: refused.RequestID}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout():
		return reply{Problem: "timeout"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return reply{Problem: "refused"}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return reply{Problem: "reset"}
	}
	return reply{Problem: "unreachable"}
}

// admin asks a node as its root admin and writes the operation down, whatever came back.
func (p *play) admin(ctx context.Context, n cluster.Node, r request) reply {
	id := fmt.Sprintf("%016x", workload.Seed(p.seed, fmt.Sprintf("request %d", p.requests.Add(1))))
	op := ledger.Operation{At: p.now(), Kind: ledger.KindAdmin, Node: n.Name(), Action: r.action, Target: r.target, RequestID: id, Expect: r.expect, Says: r.says}
	out := answerOf(r.do(client.WithRequestID(ctx, id), n.Client()), r.ok)
	if out.Status == r.ok && r.answer != nil {
		out.Text = answerText(r.answer)
	}
	if out.Status == r.ok && r.changed != nil {
		op.Changed = r.changed()
	}
	op.Done, op.Status, op.Problem, op.Text = p.now(), out.Status, out.Problem, out.Text
	switch {
	case out.Status == 0:
		op.Outcome = ledger.Unknown
	case out.Status < 300:
		op.Outcome = ledger.Acknowledged
	default:
		op.Outcome = ledger.Refused
	}
	if err := p.operations.Append(op); err != nil {
		p.trouble("%v", err)
	}
	return out
}

// insist repeats a request of the setup until it is done, while the answer says that it may be so later: no answer, 412 (a member is not
// up to date yet), 429, 503. A conflict after an answer that left open whether it was done counts as done.
func (p *play) insist(ctx context.Context, n cluster.Node, r request) error {
	open := false
	for {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		a := p.admin(limited, n, r)
		cancel()
		switch a.Status {
		case r.ok:
			return nil
		case http.StatusConflict:
			if open {
				return nil
			}
			return unexpected(r, a)
		case 0, http.StatusServiceUnavailable:
			open = true
		case http.StatusPreconditionFailed, http.StatusTooManyRequests:
		default:
			return unexpected(r, a)
		}
		if !sleep(ctx, max(a.RetryAfter, 500*time.Millisecond)) {
			return unexpected(r, a)
		}
	}
}

func unexpected(r request, a reply) error {
	if a.Status == 0 {
		return fmt.Errorf("%s of %s got no answer (%s)", r.action, r.target, a.Problem)
	}
	return fmt.Errorf("%s of %s was answered %d (%s), not %d", r.action, r.target, a.Status, firstWords(a.Text), r.ok)
}

// anyRunning is the first of nodes that runs, else the first.
func anyRunning(nodes []cluster.Node) cluster.Node {
	for _, n := range nodes {
		if n.Running() {
			return n
		}
	}
	return nodes[0]
}
