package fakes

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"sync"
	"time"
)

// store is the fake's memory: topics with partitions of records. It keeps strict order: a batch lands whole, in the order of
// its records, before it is answered, which a Narad of several nodes does not promise (DEC-16).
type store struct {
	mu     sync.Mutex // guards topics and all in them
	topics map[string]*topic
}

type topic struct {
	name, id   string
	created    time.Time
	partitions [][]stored
	children   []ScriptChild
	turn       int // of the next keyless record
}

type stored struct {
	key, payload []byte
	at           time.Time
}

func newStore(topics []ScriptTopic) *store {
	s := &store{topics: map[string]*topic{}}
	for _, t := range topics {
		if t.ID == "" {
			t.ID = newID()
		}
		if t.Partitions == 0 {
			t.Partitions = 3
		}
		s.topics[t.Name] = &topic{
			name: t.Name, id: t.ID, created: time.Now(), partitions: make([][]stored, t.Partitions), children: t.Children,
		}
	}
	return s
}

// newID is 16 hex digits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// produce stores all records or none. ifID is the incarnation that they are meant for, "" for any.
func (s *store) produce(name, ifID string, decode func() ([]record, error)) (int, *refusal) {
	if bad := s.incarnation(name, ifID); bad != nil {
		return 0, bad
	}
	records, err := decode()
	if err != nil {
		var bad *refusal
		if errors.As(err, &bad) {
			return 0, bad
		}
		return 0, refuse(500, "internal error")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		return 0, refuse(404, "topic not found")
	}
	for i, r := range records {
		if r.partition >= len(t.partitions) {
			return 0, refuse(400, "message %d: partition out of range", i)
		}
	}
	now := time.Now()
	for _, r := range records {
		p := t.place(r)
		t.partitions[p] = append(t.partitions[p], stored{key: r.Key, payload: r.Payload, at: now})
	}
	return len(records), nil
}

// incarnation refuses a topic that is absent or another one than the request names, before the body is looked at (DEC-46).
func (s *store) incarnation(name, ifID string) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	switch {
	case t == nil:
		return refuse(404, "topic not found")
	case ifID != "" && ifID != t.id:
		return refuse(412, "%s", otherIncarnation(ifID))
	}
	return nil
}

// otherIncarnation is the text of a 412 (RUN-12); it names the ID that the request named (DEC-46).
func otherIncarnation(id string) string { return "the topic is another incarnation than " + id }

// place is the partition of r: the one it names, the hash of its key, or the next in turn.
func (t *topic) place(r record) int {
	switch {
	case r.partition >= 0:
		return r.partition
	case len(r.Key) > 0:
		h := fnv.New32a()
		_, _ = h.Write(r.Key)
		return int(h.Sum32() % uint32(len(t.partitions)))
	}
	t.turn++
	return (t.turn - 1) % len(t.partitions)
}

// read returns the record at an offset; ok is false past the end.
func (s *store) read(name string, partition int, offset int64) (rec stored, ok bool, bad *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	switch {
	case t == nil:
		return stored{}, false, refuse(404, "topic not found")
	case partition < 0 || partition >= len(t.partitions) || offset < 0:
		return stored{}, false, refuse(400, "partition or offset out of range")
	case offset >= int64(len(t.partitions[partition])):
		return stored{}, false, nil
	}
	return t.partitions[partition][offset], true, nil
}

// about is a topic's ID and its partitions, "" and 0 when there is none.
func (s *store) about(name string) (id string, partitions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name]; t != nil {
		return t.id, len(t.partitions)
	}
	return "", 0
}
