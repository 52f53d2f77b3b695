package run

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"narad.example/narad/wire"
)

// steering is what an admin has told a memRig's link. Its methods are called with the rig's mu held.
type steering struct {
	deaf   bool   // a broken product: a paused link goes on sending
	poison string // the record with this ID is refused

	paused  bool
	limits  *wire.PatchLimits
	blocked *wire.BlockedAt
	skips   map[string][]int64
}

func (s *steering) holds() bool { return s.paused && !s.deaf }

func (s *steering) skipped(partition, offset int) bool {
	return slices.Contains(s.skips[strconv.Itoa(partition)], int64(offset))
}

// refuses tells whether the link is stuck on a record, and keeps where.
func (s *steering) refuses(id string, partition, offset int) bool {
	if s.poison == "" || id != s.poison || s.skipped(partition, offset) {
		return false
	}
	s.blocked = &wire.BlockedAt{Partition: partition, Offset: int64(offset), State: wire.RejectedRecord}
	return true
}

type handling func(pattern, event string, status int, f func(r *http.Request, body []byte) any)

func (n *memNode) steeringRoutes(handle handling) {
	s := &n.rig.steered
	child := "POST /v1/topics/{t}/children/{c}/"
	handle(child+"pause", "remote_child.pause", 200, func(*http.Request, []byte) any {
		s.paused = true
		return n.stub()
	})
	handle(child+"resume", "remote_child.resume", 200, func(*http.Request, []byte) any {
		s.paused = false
		return n.stub()
	})
	handle(child+"skip", "remote_child.skip", 200, func(_ *http.Request, body []byte) any {
		var at wire.SkipRecord
		_ = json.Unmarshal(body, &at)
		p := strconv.Itoa(*at.Partition)
		s.skips, s.blocked = map[string][]int64{p: {*at.Offset}}, nil
		return n.stub()
	})
	handle("PATCH /v1/remotes/{n}", "remote.update", 200, func(_ *http.Request, body []byte) any {
		var p wire.PatchRemote
		_ = json.Unmarshal(body, &p)
		s.limits = p.Limits
		return wire.Remote{}
	})
}

// Left is cluster.Leftovers.
func (r *memRig) Left(context.Context) ([]string, error) { return r.left, nil }
