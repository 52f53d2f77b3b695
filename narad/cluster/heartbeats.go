package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/peer"
)

// OpHeartbeat tells the leader that the sender lives.
const OpHeartbeat = "Heartbeat"

// Heartbeat timing (broker.md Metadata).
const (
	HeartbeatInterval = 5 * time.Second
	DeadAfter         = 30 * time.Second
)

// Leadership tells who leads; *meta.Store is one.
type Leadership interface {
	IsLeader() bool
	Leader() (id, rpcAddr string, ok bool)
	Members() []meta.Member
}

// Heartbeats sends this node's heartbeats to the leader and, while it leads itself, remembers when the others' came. They stay
// out of the Raft log. A new leader counts every member as heard at the moment it began to lead, so it declares nobody dead early.
type Heartbeats struct {
	node   string
	leader Leadership
	client *peer.Client // nil in a cluster of one

	mu    sync.Mutex // guards the rest
	leads bool
	since time.Time
	heard map[string]time.Time
	dead  []string  // as the leader said last
	told  time.Time // when it did
}

// NewHeartbeats makes the heartbeats of a node.
func NewHeartbeats(node string, l Leadership, c *peer.Client) *Heartbeats {
	return &Heartbeats{node: node, leader: l, client: c, heard: make(map[string]time.Time)}
}

type heartbeat struct {
	Node string `json:"node"`
}

// pulse answers a heartbeat: whom the leader has not heard for DeadAfter.
type pulse struct {
	Leads bool     `json:"leads"`
	Dead  []string `json:"dead,omitempty"`
}

func (h *Heartbeats) members() []string {
	var ids []string
	for _, m := range h.leader.Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

// Run sends until ctx ends.
func (h *Heartbeats) Run(ctx context.Context) error {
	body, err := json.Marshal(heartbeat{Node: h.node})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		h.beat(ctx, body)
		pause(ctx, HeartbeatInterval)
	}
	return nil
}

func (h *Heartbeats) beat(ctx context.Context, body []byte) {
	h.turn()
	id, addr, ok := h.leader.Leader()
	if !ok || id == h.node || addr == "" || h.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, HeartbeatInterval)
	defer cancel()
	// A lost heartbeat is what heartbeats are for: the leader notices, this node has nothing to do.
	answer, err := h.client.Call(ctx, addr, OpHeartbeat, body)
	var p pulse
	if err != nil || json.Unmarshal(answer, &p) != nil || !p.Leads {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead, h.told = p.Dead, time.Now()
}

// turn notices that leadership came or went and returns whether this node leads.
func (h *Heartbeats) turn() bool {
	leads := h.leader.IsLeader()
	h.mu.Lock()
	defer h.mu.Unlock()
	if leads && !h.leads {
		h.since = time.Now()
		clear(h.heard)
	}
	h.leads = leads
	return leads
}

// Handle answers OpHeartbeat.
func (h *Heartbeats) Handle(_ context.Context, body []byte) ([]byte, error) {
	var b heartbeat
	if err := json.Unmarshal(body, &b); err != nil || b.Node == "" {
		return nil, errors.New("a heartbeat that does not decode")
	}
	if !h.turn() {
		return json.Marshal(pulse{})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.heard[b.Node] = now
	p := pulse{Leads: true}
	for _, m := range h.members() {
		if m != h.node && h.silence(m, now) >= DeadAfter {
			p.Dead = append(p.Dead, m)
		}
	}
	return json.Marshal(p)
}

// silence is the time since a member was heard, on the leader. The caller holds mu.
func (h *Heartbeats) silence(member string, now time.Time) time.Duration {
	last, ok := h.heard[member]
	if !ok {
		last = h.since
	}
	return now.Sub(last)
}

// Dead tells whether a member counts as dead: the leader has not heard it for DeadAfter. A node that does not lead repeats what the
// leader told it last, for as long as DeadAfter; then it knows nothing, and nobody is dead.
func (h *Heartbeats) Dead(member string) bool {
	if member == h.node {
		return false
	}
	leads := h.turn()
	h.mu.Lock()
	defer h.mu.Unlock()
	if leads {
		return h.silence(member, time.Now()) >= DeadAfter
	}
	return time.Since(h.told) < DeadAfter && slices.Contains(h.dead, member)
}

// Age is the time since a member was heard; known is false on a node that does not lead, which cannot tell.
func (h *Heartbeats) Age(member string) (age time.Duration, known bool) {
	if !h.turn() {
		return 0, false
	}
	if member == h.node {
		return 0, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silence(member, time.Now()), true
}
