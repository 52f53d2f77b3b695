package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"narad.example/narad/fanout"
	"narad.example/narad/meta"
	"narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// statsAsk asks an owner for the numbers of partitions of one topic incarnation.
type statsAsk struct {
	TopicID    string `json:"topic_id"`
	Partitions []int  `json:"partitions"`
	From       string `json:"from,omitempty"` // of StartOffsets
}

type statsAnswer struct {
	Stats   []wire.PartitionStats `json:"stats,omitempty"`
	Offsets []int64               `json:"offsets,omitempty"` // one per partition that was asked for
}

// partitionsOf answers for partitions wherever they are (cluster.Partitions).
type partitionsOf struct{ n *Node }

// Stats asks the owner.
func (o partitionsOf) Stats(ctx context.Context, node string, t meta.Topic, partitions []int) ([]wire.PartitionStats, error) {
	if node == o.n.id {
		return o.n.owned.Stats(ctx, node, t, partitions)
	}
	var a statsAnswer
	err := o.n.ask(ctx, node, opPartitionStats, statsAsk{TopicID: t.ID, Partitions: partitions}, &a, askWait)
	return a.Stats, err
}

// askedTopic is the topic that an owner is asked about.
func (n *Node) askedTopic(id string) (meta.Topic, error) {
	t, ok := n.meta.TopicByID(id)
	if !ok {
		return t, wire.Refuse(wire.Unavailable, "the owner does not know this topic yet; try again").After(time.Second)
	}
	return t, nil
}

func (n *Node) servePartitionStats(ctx context.Context, q statsAsk) (statsAnswer, error) {
	t, err := n.askedTopic(q.TopicID)
	if err != nil {
		return statsAnswer{}, err
	}
	stats, err := n.owned.Stats(ctx, n.id, t, q.Partitions)
	if errors.Is(err, errElsewhere) {
		err = wire.Refuse(wire.Unavailable, "a partition is not this node's").After(time.Second)
	}
	return statsAnswer{Stats: stats}, err
}

func (n *Node) serveStartOffsets(_ context.Context, q statsAsk) (statsAnswer, error) {
	t, err := n.askedTopic(q.TopicID)
	if err != nil {
		return statsAnswer{}, err
	}
	offsets, err := n.owned.startOffsets(&t, q.Partitions, q.From, n.queues.Frontier)
	if errors.Is(err, errElsewhere) {
		err = wire.Refuse(wire.Unavailable, "a partition is not this node's").After(time.Second)
	}
	return statsAnswer{Offsets: offsets}, err
}

// byOwner groups the partitions of a topic.
func byOwner(t *meta.Topic) map[string][]int {
	out := map[string][]int{}
	for p := range t.Partitions {
		node := ""
		if p < len(t.Nodes) {
			node = t.Nodes[p]
		}
		out[node] = append(out[node], p)
	}
	return out
}

// starts asks the owners of a parent's partitions where a link starts (link.Fan).
type starts struct{ n *Node }

var errShortAnswer = errors.New("the owner answered for fewer partitions than it was asked for")

// StartOffsets asks every owner at once; one that does not answer is an error (CUR-05).
func (s starts) StartOffsets(ctx context.Context, parent meta.Topic, from string) ([]int64, error) {
	out := make([]int64, parent.Partitions)
	var mu sync.Mutex // guards failed
	var failed error
	var all sync.WaitGroup
	for node, ps := range byOwner(&parent) {
		all.Go(func() {
			var a statsAnswer
			var err error
			if node == s.n.id {
				a.Offsets, err = s.n.owned.startOffsets(&parent, ps, from, s.n.queues.Frontier)
			} else {
				err = s.n.ask(ctx, node, opStartOffsets, statsAsk{TopicID: parent.ID, Partitions: ps, From: from}, &a, askWait)
			}
			if err == nil && len(a.Offsets) != len(ps) {
				err = errShortAnswer
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
				return
			}
			for i, p := range ps {
				out[p] = a.Offsets[i] // each owner fills elements of its own
			}
		})
	}
	all.Wait()
	return out, failed
}

// cursorsAsk asks a node for its cursors of some children, once it has applied what the asking node has (LST-06).
type cursorsAsk struct {
	Children []string `json:"children"`
	Applied  uint64   `json:"applied"`
}

type cursorsAnswer struct {
	Cursors []fanout.CursorStats `json:"cursors,omitempty"`
}

func (n *Node) serveCursorStats(ctx context.Context, q cursorsAsk) (cursorsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	if err := n.meta.WaitApplied(ctx, q.Applied); err != nil {
		return cursorsAnswer{}, wire.Refuse(wire.Unavailable, "this node is behind the one that asks").After(time.Second)
	}
	var a cursorsAnswer
	for _, child := range q.Children {
		a.Cursors = append(a.Cursors, n.runner.Stats(child)...)
	}
	return a, nil
}

// cursors asks the given owners at once for their cursors of some children. silent lists those that did not answer.
func (n *Node) cursors(ctx context.Context, owners []string, children []string) (reports []fanout.CursorStats, silent []string) {
	q := cursorsAsk{Children: children, Applied: n.meta.Applied()}
	var mu sync.Mutex // guards reports and silent
	var all sync.WaitGroup
	for _, node := range owners {
		all.Go(func() {
			var a cursorsAnswer
			var err error
			if node == n.id {
				a, err = n.serveCursorStats(ctx, q)
			} else {
				err = n.ask(ctx, node, opCursorStats, q, &a, askWait)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, node)
				return
			}
			for _, c := range a.Cursors {
				if c.Node == node { // a node reports its own
					reports = append(reports, c)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(silent)
	return reports, silent
}

func ownersOf(t *meta.Topic) []string {
	var out []string
	for node := range byOwner(t) {
		out = append(out, node)
	}
	slices.Sort(out)
	return out
}

// listing folds the reports of all owners (api.Listing, LST-01).
type listing struct{ n *Node }

// Listing answers within the time that a silent owner is waited for; its partitions are unknown (LST-02).
func (l listing) Listing(ctx context.Context, parent string, partitions bool) (wire.Children, error) {
	t, _ := l.n.meta.Topic(parent)
	var names []string
	for _, c := range l.n.meta.Children(parent) {
		names = append(names, c.Name)
	}
	byChild := map[string][]fanout.CursorStats{}
	if len(names) > 0 {
		reports, _ := l.n.cursors(ctx, ownersOf(&t), names)
		for _, r := range reports {
			byChild[r.Child] = append(byChild[r.Child], owning(t, r)...)
		}
	}
	return fanout.List(l.n.meta.State, parent, partitions, func(child string) []fanout.CursorStats { return byChild[child] }, l.n.wall())
}

// owning is the report if it comes from the partition's owner: nobody else's counts.
func owning(parent meta.Topic, r fanout.CursorStats) []fanout.CursorStats {
	if r.Partition < 0 || r.Partition >= len(parent.Nodes) || parent.Nodes[r.Partition] != r.Node {
		return nil
	}
	return []fanout.CursorStats{r}
}

// everybody is every member and every Raft server without a member record, in ID order, this node included.
func (n *Node) everybody() []string {
	var ids []string
	for _, s := range n.meta.Servers() {
		ids = append(ids, s.ID)
	}
	for _, m := range n.meta.Members() {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// lags reads the owners' cursor lags (link.Lag).
type lags struct{ n *Node }

// Lag folds the cursors of every owner; a partition without a report of this epoch leaves it incomplete (UNS-02).
func (l lags) Lag(ctx context.Context, child meta.Topic) link.LagReport {
	parent, ok := l.n.meta.Topic(child.Parent)
	if !ok {
		return link.LagReport{}
	}
	reports, silent := l.n.cursors(ctx, ownersOf(&parent), []string{child.Name})
	return foldLag(parent, child, reports, silent)
}

// foldLag counts each partition once, by its owner's report of this attach. An owner without such a report is as good as silent.
func foldLag(parent, child meta.Topic, reports []fanout.CursorStats, silent []string) link.LagReport {
	r := link.LagReport{NotAnswering: slices.Clone(silent)}
	reported := map[int]bool{}
	for _, c := range reports {
		if c.Epoch == child.AttachEpoch && c.ParentID == parent.ID && len(owning(parent, c)) > 0 && !reported[c.Partition] {
			reported[c.Partition] = true
			r.Messages += c.Lag()
		}
	}
	for node, ps := range byOwner(&parent) {
		missing := slices.ContainsFunc(ps, func(p int) bool { return !reported[p] })
		if missing && !slices.Contains(r.NotAnswering, node) {
			r.NotAnswering = append(r.NotAnswering, node)
		}
	}
	slices.Sort(r.NotAnswering)
	r.Complete = len(r.NotAnswering) == 0
	return r
}

// stuck reads what the cursors of a link are stuck on (link.Cursors).
type stuck struct{ n *Node }

var errNoCursor = errors.New("the partition's owner does not answer, or runs no cursor of this attach")

// Blocked asks the partition's owner; every lane of its cursor may be stuck on a record of its own (DEC-37).
func (s stuck) Blocked(ctx context.Context, parent, child meta.Topic, partition int) ([]wire.BlockedAt, error) {
	if partition < 0 || partition >= len(parent.Nodes) {
		return nil, errNoCursor
	}
	reports, _ := s.n.cursors(ctx, parent.Nodes[partition:partition+1], []string{child.Name})
	for _, c := range reports {
		if c.ParentID != parent.ID || c.Epoch != child.AttachEpoch || c.Partition != partition {
			continue
		}
		return c.Blocked, nil
	}
	return nil, errNoCursor
}

// backlogAsk asks a member how many records of a topic incarnation wait in its ingress.
type backlogAsk struct {
	TopicID string `json:"topic_id"`
}

type backlogAnswer struct {
	Records int64 `json:"records"`
}

func (n *Node) serveIngressBacklog(_ context.Context, q backlogAsk) (backlogAnswer, error) {
	return backlogAnswer{n.ingress.Backlog(q.TopicID)}, nil
}

// backlogs reads the members' ingress backlogs (link.Backlog).
type backlogs struct{ n *Node }

// Backlog asks every member, dead ones and Raft servers without a member record included: whoever is silent may hold records (UNS-01).
func (b backlogs) Backlog(ctx context.Context, topic meta.Topic) link.BacklogReport {
	r := link.BacklogReport{Nodes: map[string]int64{}}
	var mu sync.Mutex // guards r
	var all sync.WaitGroup
	for _, id := range b.n.everybody() {
		all.Go(func() {
			a := backlogAnswer{}
			var err error
			if id == b.n.id {
				a.Records = b.n.ingress.Backlog(topic.ID)
			} else {
				err = b.n.ask(ctx, id, opIngressBacklog, backlogAsk{topic.ID}, &a, askWait)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				r.NotAnswering = append(r.NotAnswering, id)
			case a.Records > 0:
				r.Nodes[id] = a.Records
			}
		})
	}
	all.Wait()
	slices.Sort(r.NotAnswering)
	return r
}

type holdingsAnswer struct {
	Holdings []link.Holding `json:"holdings,omitempty"`
}

func (n *Node) serveRemoteStatus(context.Context, struct{}) (holdingsAnswer, error) {
	return holdingsAnswer{n.remote.links.Holdings()}, nil
}
