package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"narad.example/narad/access"
	"narad.example/narad/wire"
)

// produceTarget finds the topic of a produce and refuses everything that can be refused before the body is looked at: no grant,
// another incarnation (RUN-12, DEC-46), a stub, a delay child.
func produceTarget(c *call) (t access.Topic, ifTopicID string, err error) {
	if t, err = c.granted(wire.ActionProduce); err != nil {
		return t, "", err
	}
	if !c.s.o.Older {
		ifTopicID = c.r.Header.Get(wire.HeaderIfTopicID)
	}
	if ifTopicID != "" && ifTopicID != t.ID {
		return t, "", wire.Refuse(wire.Precondition, "the topic is another incarnation than the one in %s", wire.HeaderIfTopicID)
	}
	if t.Remote != "" || t.Parent != "" && t.DelayMS > 0 {
		// The broker words and counts this refusal; without records nothing can be stored.
		if err = c.s.o.Producer.Produce(c.ctx(), t.Name, ifTopicID, nil); err != nil {
			return t, "", err
		}
	}
	return t, ifTopicID, nil
}

// produceSlot counts a produce against its user's limit before anything of the body is read; leave is nil beside the refusal.
func produceSlot(c *call) (leave func(), err error) {
	f := &c.s.produces
	switch {
	case f.limit == 0:
		return func() {}, nil
	case !f.enter(c.id.Name):
		return nil, wire.Refuse(wire.Throttled, "too many produces at once for this user").After(time.Second)
	}
	return func() { f.leave(c.id.Name) }, nil
}

func produce(c *call) (answer, error) {
	t, ifTopicID, err := produceTarget(c)
	if err != nil {
		return answer{}, err
	}
	leave, err := produceSlot(c)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	key, _, err := c.param("key")
	if err != nil {
		return answer{}, err
	}
	if len(key) > wire.MaxKey {
		return answer{}, wire.Refuse(wire.Invalid, "key too large")
	}
	partition, err := c.partition()
	if err != nil {
		return answer{}, err
	}
	payload, err := c.read(wire.MaxPayload, wire.TooLarge)
	if err != nil {
		return answer{}, err
	}
	if len(payload) == 0 {
		return answer{}, wire.Refuse(wire.Invalid, "payload required")
	}
	rec := wire.NewRecord{Payload: payload, Partition: -1}
	if key != "" {
		rec.Key = []byte(key)
	}
	if partition != nil {
		rec.Partition = *partition
	}
	if err = c.s.o.Producer.Produce(c.ctx(), t.Name, ifTopicID, []wire.NewRecord{rec}); err != nil {
		return answer{}, single(err)
	}
	return answer{status: http.StatusAccepted}, nil
}

// single takes the index off a refusal: there is one message only.
func single(err error) error {
	var p *wire.Problem
	if !errors.As(err, &p) {
		return err
	}
	q := *p
	q.Text = strings.TrimPrefix(p.Text, "message 0: ")
	return &q
}

func produceBatch(c *call) (answer, error) {
	t, ifTopicID, err := produceTarget(c)
	if err != nil {
		return answer{}, err
	}
	for _, name := range []string{"key", "partition"} {
		_, present, paramErr := c.param(name)
		if paramErr != nil {
			return answer{}, paramErr
		}
		if present {
			return answer{}, wire.Refuse(wire.Invalid, "%s belongs into each message of a batch, not into the query", name)
		}
	}
	leave, err := produceSlot(c)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	body, err := readBatch(c)
	unused := true // by anybody but this request
	defer func() { body.done(unused) }()
	if err != nil {
		if errors.Is(err, errBudget) {
			c.s.o.BudgetRefused()
		}
		return answer{}, err
	}
	recs := records.Get().(*[]wire.NewRecord)
	defer func() {
		clear(*recs) // a pooled slice must not keep bodies alive
		*recs = (*recs)[:0]
		records.Put(recs)
	}()
	if err = wire.ParseBatch(body.bytes, c.s.o.Limits.Messages, func(r wire.NewRecord) { *recs = append(*recs, r) }); err != nil {
		return answer{}, err
	}
	unused = false // after an error a group commit may still read the records
	if err = c.s.o.Producer.Produce(c.ctx(), t.Name, ifTopicID, *recs); err != nil {
		return answer{}, err
	}
	unused = true
	raw := append(strconv.AppendInt([]byte(`{"accepted":`), int64(len(*recs)), 10), "}\n"...)
	return answer{status: http.StatusAccepted, raw: raw}, nil
}
