package cluster

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Liveness words of a partition whose owner did not answer, and the status words (api.md Topics).
const (
	StatusOK         = "ok"
	OwnerUnavailable = "owner_unavailable"

	ownerUnassigned  = "unassigned"
	ownerUnknown     = "unknown"
	ownerUnreachable = "unreachable"
	ownerDead        = "dead"
)

// ownerPatience is how long a describe waits for an owner (api.md: What clients lean on).
const ownerPatience = 2 * time.Second

// View is a record as answers show it.
func View(t meta.Topic, children []meta.Topic) wire.Topic {
	v := wire.Topic{
		Name: t.Name, ID: t.ID, Partitions: t.Partitions, RetentionMS: t.RetentionMS,
		VisibilityTimeoutMS: t.VisibilityTimeoutMS, MaxInFlightPerPartition: t.MaxInFlight,
		MaxAckedAheadPerPartition: t.MaxAckedAhead, CreatedAt: t.CreatedAt, Owner: t.Owner, Role: wire.Standalone,
		Parent: t.Parent, AttachEpoch: t.AttachEpoch, FanoutDelayMS: t.FanoutDelayMS, AttachOffsets: t.AttachOffsets,
	}
	for _, c := range children {
		v.Children = append(v.Children, c.Name)
	}
	switch {
	case t.Parent != "":
		v.Role = wire.Child
	case len(children) > 0:
		v.Role = wire.Parent
	}
	if l := t.Remote; l != nil {
		v.Remote = &wire.Link{
			Name: l.Remote, Topic: l.Topic, TargetID: l.TargetID, From: l.From, Lanes: l.Lanes, Paused: l.Paused,
			PauseReason: l.PauseReason, PausedBy: l.PausedBy, PausedAtMS: l.PausedAtMS, CreatedBy: l.CreatedBy,
		}
		for p, offsets := range l.Skip {
			if v.Remote.Skip == nil {
				v.Remote.Skip = make(map[string][]int64, len(l.Skip))
			}
			v.Remote.Skip[strconv.Itoa(p)] = offsets
		}
	}
	return v
}

// Get describes a topic: its record and the numbers of its partitions, or of one. Owners are asked at once and for 2 s; those
// that do not answer get placeholders and the answer is partial.
func (t *Topics) Get(ctx context.Context, name string, partition *int) (wire.TopicDetail, error) {
	r, ok := t.meta.Topic(name)
	if !ok {
		return wire.TopicDetail{}, noTopic()
	}
	d := wire.TopicDetail{Topic: View(r, t.meta.Children(name)), PartitionStats: []wire.PartitionStats{}}
	now, version := r.Schema()
	d.SchemaVersion, d.Schema = version, now.Body
	var wanted []int
	switch {
	case partition == nil:
		for p := range r.Partitions {
			wanted = append(wanted, p)
		}
	case *partition < 0 || *partition >= r.Partitions:
		return wire.TopicDetail{}, invalid("the topic has no such partition")
	default:
		wanted = []int{*partition}
	}
	ctx, cancel := context.WithTimeout(ctx, ownerPatience)
	defer cancel()
	stats, failed := t.ask(ctx, r, wanted)
	d.PartitionStats = append(d.PartitionStats, stats...)
	d.Partial = failed
	return d, nil
}

// ask asks every owner of the wanted partitions at once. Partitions without an answer are placeholders.
func (t *Topics) ask(ctx context.Context, r meta.Topic, wanted []int) (stats []wire.PartitionStats, failed bool) {
	byNode := make(map[string][]int)
	for _, p := range wanted {
		byNode[owner(r, p)] = append(byNode[owner(r, p)], p)
	}
	answers := make(map[int]wire.PartitionStats, len(wanted))
	var mu sync.Mutex // guards answers
	var asked sync.WaitGroup
	for node, ps := range byNode {
		if node == "" {
			continue
		}
		asked.Go(func() {
			got, err := t.partitions.Stats(ctx, node, r, ps)
			if err != nil || len(got) != len(ps) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i, p := range ps {
				got[i].Index, got[i].OwnerNode, got[i].Status = p, node, StatusOK
				answers[p] = got[i]
			}
		})
	}
	asked.Wait()
	for _, p := range wanted {
		s, ok := answers[p]
		if !ok {
			failed = true
			s = t.placeholder(r, p)
		}
		stats = append(stats, s)
	}
	return stats, failed
}

func (t *Topics) placeholder(r meta.Topic, p int) wire.PartitionStats {
	s := wire.PartitionStats{Index: p, OwnerNode: owner(r, p), Status: OwnerUnavailable, OwnerLiveness: ownerUnreachable}
	known := func(m meta.Member) bool { return m.ID == s.OwnerNode }
	switch {
	case s.OwnerNode == "":
		s.OwnerLiveness = ownerUnassigned
	case s.OwnerNode != t.node && !slices.ContainsFunc(t.meta.Members(), known):
		s.OwnerLiveness = ownerUnknown
	case t.dead(s.OwnerNode):
		s.OwnerLiveness = ownerDead
	}
	return s
}

func owner(r meta.Topic, p int) string {
	if p < len(r.Nodes) {
		return r.Nodes[p]
	}
	return ""
}

// watermarks are the committed high watermarks of all partitions of a parent, where an attach starts (CUR-05). An owner that
// does not answer fails the attach with 503.
func (t *Topics) watermarks(ctx context.Context, parent meta.Topic) ([]int64, error) {
	wanted := make([]int, parent.Partitions)
	for p := range wanted {
		wanted[p] = p
	}
	stats, failed := t.ask(ctx, parent, wanted)
	if failed {
		return nil, wire.Refuse(wire.Unavailable, "an owner of the parent's partitions cannot be asked where to start; try again").
			After(time.Second)
	}
	offsets := make([]int64, 0, len(stats))
	for _, s := range stats {
		offsets = append(offsets, s.HighWatermark)
	}
	return offsets, nil
}
