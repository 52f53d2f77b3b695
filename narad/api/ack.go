package api

import (
	"context"
	"errors"
	"net/http"

	"narad.example/narad/wire"
)

const maxHandles = 100

// settle is what an ack request does to a handle.
type settle func(ctx context.Context, topic, handle string) error

func ack(c *call) (answer, error) {
	t, err := c.granted(wire.ActionConsume)
	if err != nil {
		return answer{}, err
	}
	if err = notStub(&t); err != nil {
		return answer{}, err
	}
	do, err := readSettle(c)
	if err != nil {
		return answer{}, err
	}
	handle, present, err := c.param("receipt_handle")
	if err != nil {
		return answer{}, err
	}
	if present { // the body is not read
		if err = do(c.ctx(), t.Name, handle); err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusNoContent}, nil
	}
	var req wire.AckBatch
	if err = c.decode(maxAckBody, wire.TooLarge, &req); err != nil {
		return answer{}, err
	}
	if n := len(req.ReceiptHandles); n < 1 || n > maxHandles {
		return answer{}, wire.Refuse(wire.Invalid, "receipt_handles must be 1 to %d", maxHandles)
	}
	out := wire.AckResults{Results: make([]wire.AckResult, 0, len(req.ReceiptHandles))}
	for _, h := range req.ReceiptHandles {
		out.Results = append(out.Results, ackResult(c, do(c.ctx(), t.Name, h)))
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// readSettle reads what to do: ack, renew the lease, or give the record back.
func readSettle(c *call) (settle, error) {
	v, present, err := c.param("extend")
	if err != nil {
		return nil, err
	}
	switch {
	case !present || v == "false":
		return c.s.o.Consumer.Ack, nil
	case v == "true" || v == "1":
		return c.s.o.Consumer.Extend, nil
	case v == "0":
		return c.s.o.Consumer.Nack, nil
	}
	return nil, wire.Refuse(wire.Invalid, "extend must be true, 1, false or 0")
}

// ackResult is one line of a batch ack's answer.
func ackResult(c *call, err error) wire.AckResult {
	if err == nil {
		return wire.AckResult{Status: http.StatusNoContent}
	}
	var p *wire.Problem
	if errors.As(err, &p) && p.Kind != wire.Internal {
		return wire.AckResult{Status: statuses[p.Kind], Error: p.Text}
	}
	c.s.o.Logger.Error("ack failed", "route", c.route, "request_id", c.requestID, "error", err.Error())
	return wire.AckResult{Status: http.StatusInternalServerError, Error: "internal error"}
}
