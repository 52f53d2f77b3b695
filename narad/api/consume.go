package api

import (
	"net/http"
	"sync"
	"time"

	"narad.example/narad/access"
	"narad.example/narad/wire"
)

const (
	maxRecords = 100     // of a batch consume
	maxAnswer  = 8 << 20 // of a batch consume; its first record always goes
)

// inFlight counts the requests of a kind that each user has running on this node.
type inFlight struct {
	limit int

	mu    sync.Mutex // guards users
	users map[string]int
}

func (f *inFlight) enter(user string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users[user] >= f.limit {
		return false
	}
	if f.users == nil {
		f.users = map[string]int{}
	}
	f.users[user]++
	return true
}

func (f *inFlight) leave(user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users[user]--; f.users[user] == 0 {
		delete(f.users, user)
	}
}

// notStub refuses a consume or ack of a remote child's stub.
func notStub(t *access.Topic) error {
	if t.Remote == "" {
		return nil
	}
	return wire.Refuse(wire.Conflict, "remote child %q lives on remote %s; consume it there", t.Name, t.Remote)
}

func consume(c *call) (answer, error) {
	t, err := c.granted(wire.ActionConsume)
	if err != nil {
		return answer{}, err
	}
	if err = notStub(&t); err != nil {
		return answer{}, err
	}
	limit, batch, err := readMax(c)
	if err != nil {
		return answer{}, err
	}
	partition, err := c.partition()
	if err != nil {
		return answer{}, err
	}
	offset, replay, err := c.number("offset", 64)
	switch {
	case err != nil:
		return answer{}, err
	case replay && batch:
		return answer{}, wire.Refuse(wire.Invalid, "max and offset exclude each other")
	case replay && partition == nil:
		return answer{}, wire.Refuse(wire.Invalid, "offset needs partition")
	}
	var wait time.Duration
	if !replay {
		if wait, err = readWait(c); err != nil {
			return answer{}, err
		}
	}
	if !c.s.consumes.enter(c.id.Name) {
		return answer{}, wire.Refuse(wire.Throttled, "too many consumes at once for this user").After(time.Second)
	}
	defer c.s.consumes.leave(c.id.Name)
	if replay {
		return replayOne(c, &t, *partition, offset)
	}
	ds, err := c.s.o.Consumer.Consume(c.ctx(), t.Name, partition, limit, wait)
	switch {
	case err != nil:
		return answer{}, err
	case len(ds) == 0:
		return answer{status: http.StatusNoContent}, nil
	case batch:
		return answer{status: http.StatusOK, raw: messages(c, ds)}, nil
	}
	return answer{status: http.StatusOK, raw: append(appendMessage(nil, &ds[0]), '\n')}, nil
}

// readMax reads the parameter that makes a consume a batch.
func readMax(c *call) (limit int, batch bool, err error) {
	n, batch, err := c.number("max", 32)
	switch {
	case err != nil:
		return 0, batch, err
	case !batch:
		return 1, false, nil
	case c.r.Header.Get(wire.HeaderClient) == "":
		return 0, true, wire.Refuse(wire.Invalid, "a consume with max needs the header %s", wire.HeaderClient)
	case n < 1 || n > maxRecords:
		return 0, true, wire.Refuse(wire.Invalid, "max must be 1 to %d", maxRecords)
	}
	return int(n), true, nil
}

// readWait reads how long the client waits for a record, and cuts it to the node's limit.
func readWait(c *call) (time.Duration, error) {
	v, present, err := c.param("wait")
	if err != nil || !present {
		return 0, err
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return 0, wire.Refuse(wire.Invalid, "bad wait")
	}
	if longest := c.s.o.Limits.ConsumeWait; d > longest {
		c.Header().Set(wire.HeaderClamped, longest.String())
		return longest, nil
	}
	return d, nil
}

func replayOne(c *call, t *access.Topic, partition int, offset int64) (answer, error) {
	d, err := c.s.o.Consumer.Replay(c.ctx(), t.Name, partition, offset)
	switch {
	case err != nil:
		return answer{}, err
	case d == nil:
		return answer{status: http.StatusNoContent}, nil
	}
	return answer{status: http.StatusOK, raw: append(appendMessage(nil, d), '\n')}, nil
}

// messages is the answer of a batch consume. What does not fit goes back to the queue at once.
func messages(c *call, ds []wire.Delivery) []byte {
	size := 64
	for i := range ds {
		size += len(ds[i].Payload) + len(ds[i].Key) + 256
	}
	out := append(make([]byte, 0, min(size, maxAnswer)), `{"messages":[`...)
	for i := range ds {
		before := len(out)
		if i > 0 {
			out = append(out, ',')
		}
		out = appendMessage(out, &ds[i])
		if len(out) <= maxAnswer || i == 0 {
			continue
		}
		out = out[:before]
		for j := range ds[i:] {
			// A record that cannot be given back comes again when its lease ends.
			_ = c.s.o.Consumer.Nack(c.ctx(), ds[i+j].Topic, ds[i+j].Handle)
		}
		break
	}
	return append(out, "]}\n"...)
}
