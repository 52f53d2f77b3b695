package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"narad.example/narad/ingress"
	"narad.example/narad/meta"
	"narad.example/narad/move"
	"narad.example/narad/partition"
	"narad.example/narad/wire"
)

// commitHead begins the body of a Commit: four bytes of its length, itself in JSON, then the records. From, Life and Number are the
// dispatcher's, which has one commit in flight per partition: a number that is not above the last one is a straggler, which must not
// land behind the try that replaced it.
type commitHead struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	From      string `json:"from,omitempty"`
	Life      string `json:"life,omitempty"`
	Number    uint64 `json:"number,omitempty"`
}

var errCommitBody = errors.New("the body of a commit does not decode")

// encodeCommit lays out a commit: after the head, for each record the length of its key plus one (0 is none), that of its payload, and both.
func encodeCommit(h commitHead, recs []partition.Record) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode a commit: %w", err)
	}
	size := 4 + len(head)
	for i := range recs {
		size += 8 + len(recs[i].Key) + len(recs[i].Payload)
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(head)))
	b = append(b, head...)
	for i := range recs {
		key := uint32(0)
		if recs[i].Key != nil {
			key = uint32(len(recs[i].Key)) + 1
		}
		b = binary.LittleEndian.AppendUint32(b, key)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(recs[i].Payload)))
		b = append(append(b, recs[i].Key...), recs[i].Payload...)
	}
	return b, nil
}

// decodeCommit reads a commit; the records point into b.
func decodeCommit(b []byte) (h commitHead, recs []partition.Record, err error) {
	cut := func(n uint64) []byte {
		if n > uint64(len(b)) {
			err, b = errCommitBody, nil
			return nil
		}
		part := b[:n:n]
		b = b[n:]
		return part
	}
	number := func() uint64 {
		if part := cut(4); part != nil {
			return uint64(binary.LittleEndian.Uint32(part))
		}
		return 0
	}
	if json.NewDecoder(bytes.NewReader(cut(number()))).Decode(&h) != nil || err != nil {
		return h, nil, errCommitBody
	}
	for len(b) > 0 {
		key, payload := number(), number()
		var r partition.Record
		if key > 0 {
			r.Key = cut(key - 1)
		}
		r.Payload = cut(payload)
		if err != nil {
			return h, nil, err
		}
		recs = append(recs, r)
	}
	return h, recs, nil
}

// router commits to the owner of a partition, here or on another node (ingress.Committer, fanout.Committer). With a line each commit
// of a partition is numbered; the caller then has one in flight per partition.
type router struct {
	n    *Node
	life string // of this process; empty for commits without numbers

	mu     sync.Mutex // guards what follows
	last   uint64
	silent map[string]bool // owners whose newest commit got no answer; true while one asks again for all
}

// errSilent is returned at once while another commit finds out whether the owner answers again. Commits that wait for a silent owner
// would take every slot of the dispatcher, and with them those of owners that are well.
var errSilent = errors.New("the owner did not answer, and is being asked again")

// enter tells whether a commit to the owner may go.
func (r *router) enter(owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	asking, silent := r.silent[owner]
	if asking {
		return false
	}
	if silent {
		r.silent[owner] = true
	}
	return true
}

// leave takes the result of a commit: any word of the owner ends its silence, also that it failed.
func (r *router) leave(owner string, err error) {
	var said *wire.Problem
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || errors.As(err, &said) || grpcstatus.Code(err) == codes.Internal {
		delete(r.silent, owner)
		return
	}
	if r.silent == nil {
		r.silent = map[string]bool{}
	}
	r.silent[owner] = false
}

func (r *router) next() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return r.last
}

// Commit is done when it returns nil. ingress.ErrOwnerDead says that the owner counts as dead, so that nothing was tried.
func (r *router) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	t, ok := r.n.meta.TopicByID(topicID)
	if !ok || p < 0 || p >= len(t.Nodes) {
		return fmt.Errorf("topic incarnation %s partition %d is not known here", topicID, p)
	}
	owner := t.Nodes[p]
	if owner == r.n.id {
		return r.n.owned.Commit(ctx, topicID, p, recs)
	}
	if r.n.dead(owner) {
		return fmt.Errorf("node %s: %w", owner, ingress.ErrOwnerDead)
	}
	if !r.enter(owner) {
		return fmt.Errorf("node %s: %w", owner, errSilent)
	}
	h := commitHead{TopicID: topicID, Partition: p}
	if r.life != "" {
		h.From, h.Life, h.Number = r.n.id, r.life, r.next()
	}
	body, err := encodeCommit(h, recs)
	if err == nil {
		_, err = r.n.exchange(ctx, owner, opCommit, body, commitWait)
	}
	r.leave(owner, err)
	if classOf(err) == classFrozen {
		err = fmt.Errorf("node %s: %w", owner, ingress.ErrFrozen)
	}
	return err
}

// classFrozen is the class of an owner's refusal while the partition is being moved.
const classFrozen = "frozen"

func classOf(err error) string {
	var said *wire.Problem
	if !errors.As(err, &said) {
		return ""
	}
	class, _ := said.Fields["class"].(string)
	return class
}

// Sibling names another partition of the topic for records whose own partition fails (BRK-02): one of this node's first, else one of
// a live owner that is not the failing one.
func (r *router) Sibling(topicID string, p int) (int, bool) {
	t, ok := r.n.meta.TopicByID(topicID)
	if !ok || p >= len(t.Nodes) {
		return 0, false
	}
	found, have := 0, false
	for i := range t.Nodes {
		at := (p + i) % len(t.Nodes) // begins behind p, so that the failing partitions of a topic do not all choose one sibling
		switch owner := t.Nodes[at]; {
		case owner == t.Nodes[p] || owner == "" || r.n.dead(owner):
		case owner == r.n.id:
			return at, true
		case !have:
			found, have = at, true
		}
	}
	return found, have
}

// commitLines remembers the last number of each sender's line, so that a straggler is refused.
type commitLines struct {
	mu    sync.Mutex // guards lines
	lines map[commitLine]numbered
}

type commitLine struct {
	from, topicID string
	partition     int
}

type numbered struct {
	life string
	last uint64
}

// maxLines bounds what is remembered; forgetting lets a straggler in, which repeats records and loses none.
const maxLines = 1 << 16

// enter tells whether the commit is the newest of its line.
func (c *commitLines) enter(h commitHead) bool {
	if h.Life == "" {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil || len(c.lines) >= maxLines {
		c.lines = map[commitLine]numbered{}
	}
	at := commitLine{h.From, h.TopicID, h.Partition}
	if l := c.lines[at]; l.life == h.Life && h.Number <= l.last {
		return false
	}
	c.lines[at] = numbered{h.Life, h.Number}
	return true
}

// serveCommit commits what another node took in. The topic incarnation must be known here and the partition this node's own.
func (n *Node) serveCommit(ctx context.Context, body []byte) ([]byte, error) {
	if !n.front.whole.Load() {
		return nil, starting()
	}
	h, recs, err := decodeCommit(body)
	if err != nil {
		return nil, wire.Refuse(wire.Invalid, "%s", err.Error())
	}
	t, ok := n.meta.TopicByID(h.TopicID)
	if !ok || h.Partition < 0 || h.Partition >= len(t.Nodes) || t.Nodes[h.Partition] != n.id {
		return nil, wire.Refuse(wire.Unavailable, "the partition is not this node's, or not known here yet")
	}
	if !n.commits.enter(h) {
		return nil, wire.Refuse(wire.Unavailable, "a later try of this commit came before it")
	}
	err = n.owned.Commit(ctx, h.TopicID, h.Partition, recs)
	switch {
	case errors.Is(err, ingress.ErrFrozen):
		return nil, wire.Refuse(wire.Unavailable, "the partition is being moved").With("class", classFrozen)
	case errors.Is(err, move.ErrStarting):
		return nil, starting()
	case errors.Is(err, errElsewhere): // it moved away meanwhile
		return nil, wire.Refuse(wire.Unavailable, "the partition is not this node's any more")
	}
	return nil, err
}

var _ interface {
	ingress.Committer
	ingress.Rerouter
} = (*router)(nil)

// newLife names this process's line of commits.
func newLife() string { return meta.NewID() }
