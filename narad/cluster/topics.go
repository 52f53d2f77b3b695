package cluster

import (
	"context"
	"encoding/base64"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/schema"
	"narad.example/narad/wire"
)

// Meta is what topic administration needs of the metadata; *meta.Store is one.
type Meta interface {
	Topic(name string) (meta.Topic, bool)
	TopicsAfter(name string, limit int) []meta.Topic
	Children(parent string) []meta.Topic
	Members() []meta.Member
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
}

// Partitions asks the node that owns partitions for their numbers. The error says that the node cannot be asked.
type Partitions interface {
	// Stats returns one element per wanted partition, in that order; OwnerNode and Status may be left empty.
	Stats(ctx context.Context, node string, t meta.Topic, partitions []int) ([]wire.PartitionStats, error)
}

// TopicsOptions of Topics; Meta, NodeID and Partitions are needed.
type TopicsOptions struct {
	Meta       Meta
	NodeID     string // owner of everything while there are no members
	Partitions Partitions
	Defaults   Defaults
	Dead       func(member string) bool                                       // nil is never
	Schema     func(ctx context.Context, raw []byte) (schema.Document, error) // checks a schema; nil is schema.Parse
}

// Topics administers topics and local children. Every error is a *wire.Problem. Who may do what is package access's business.
type Topics struct {
	meta       Meta
	node       string
	partitions Partitions
	defaults   Defaults
	dead       func(member string) bool
	schema     func(ctx context.Context, raw []byte) (schema.Document, error)
}

// NewTopics makes the administration.
func NewTopics(o TopicsOptions) *Topics {
	if o.Dead == nil {
		o.Dead = func(string) bool { return false }
	}
	if o.Schema == nil {
		o.Schema = func(_ context.Context, raw []byte) (schema.Document, error) { return schema.Parse(raw) }
	}
	return &Topics{meta: o.Meta, node: o.NodeID, partitions: o.Partitions, defaults: o.Defaults.filled(), dead: o.Dead, schema: o.Schema}
}

// Create makes a topic whose owner is actor; with a parent it is attached in the same entry, from the parent's committed high
// watermarks (CUR-04). It takes records at once.
func (t *Topics) Create(ctx context.Context, actor string, req wire.CreateTopic) (wire.Topic, error) {
	if p := checkRequest(req); p != nil {
		return wire.Topic{}, p
	}
	var parent *meta.Topic
	if req.Parent != "" {
		found, ok := t.meta.Topic(req.Parent)
		if !ok {
			return wire.Topic{}, wire.Refuse(wire.NotFound, "no such parent topic")
		}
		parent = &found
	}
	n, p := t.defaults.newTopic(req, parent)
	if p != nil {
		return wire.Topic{}, p
	}
	n.ID, n.CreatedAt, n.Owner = meta.NewID(), time.Now().Unix(), actor
	n.Nodes = assign(t.owners(), n.ID, 0, n.Partitions)
	e := meta.CreateTopic{Topic: n}
	if parent != nil {
		if _, taken := t.meta.Topic(n.Name); taken {
			return wire.Topic{}, wire.Refuse(wire.Conflict, "topic already exists") // before anyone is asked for offsets
		}
		offsets, err := t.watermarks(ctx, *parent)
		if err != nil {
			return wire.Topic{}, err
		}
		e.ParentID, e.Topic.AttachEpoch, e.Topic.AttachOffsets = parent.ID, meta.NewID(), offsets
	}
	entry, err := t.created(ctx, e, req.Schema)
	if err != nil {
		return wire.Topic{}, err
	}
	if _, err = t.meta.Propose(ctx, entry); err != nil {
		return wire.Topic{}, err
	}
	return View(e.Topic, nil), nil
}

// List returns a page of the topics that visible lets through, in name order. The token is the page before's; "" starts. A limit
// above 1,000 is cut to it.
func (t *Topics) List(_ context.Context, limit int, token string, visible func(wire.Topic) bool) (wire.TopicPage, error) {
	page := wire.TopicPage{Topics: []wire.Topic{}}
	if limit < 1 {
		return page, invalid("limit must be at least 1")
	}
	limit = min(limit, maxPage)
	after, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || token != "" && !ValidName(string(after)) {
		return page, invalid("page_token is not one of ours")
	}
	last := string(after)
	for {
		// One more than asked tells whether a next page exists.
		chunk := t.meta.TopicsAfter(last, limit+1)
		for _, r := range chunk {
			v := View(r, t.meta.Children(r.Name))
			if visible != nil && !visible(v) {
				last = r.Name
				continue
			}
			if len(page.Topics) == limit {
				page.NextPageToken = base64.RawURLEncoding.EncodeToString([]byte(last))
				return page, nil
			}
			page.Topics = append(page.Topics, v)
			last = r.Name
		}
		if len(chunk) <= limit {
			return page, nil
		}
	}
}

// Alter changes a topic in one entry: all of it or nothing. The schema that the topic has already stores nothing.
func (t *Topics) Alter(ctx context.Context, name string, req wire.AlterTopic) (wire.TopicDetail, error) {
	old, ok := t.meta.Topic(name)
	if !ok {
		return wire.TopicDetail{}, noTopic()
	}
	e, p := t.defaults.alteration(&old, req)
	if p != nil {
		return wire.TopicDetail{}, p
	}
	if e.Partitions != nil && !old.IsStub() {
		e.Nodes = assign(t.owners(), old.ID, old.Partitions, *e.Partitions)
	}
	entry, err := t.altered(ctx, &old, e, req)
	if err != nil {
		return wire.TopicDetail{}, err
	}
	if entry != nil {
		if _, err = t.meta.Propose(ctx, entry); err != nil {
			return wire.TopicDetail{}, err
		}
	}
	return t.Get(ctx, name, nil)
}

// Delete removes a topic; its local children go on alone. A stub, or a topic with remote children, is a Conflict: package link
// deletes those (WRT-07).
func (t *Topics) Delete(ctx context.Context, name string) error {
	old, ok := t.meta.Topic(name)
	if !ok {
		return noTopic()
	}
	_, err := t.meta.Propose(ctx, meta.DeleteTopic{Name: old.Name, ID: old.ID})
	return err
}

// AttachLocal makes an existing topic a local child, from the parent's committed high watermarks, and returns the parent.
func (t *Topics) AttachLocal(ctx context.Context, parent string, req wire.AttachChild) (wire.Topic, error) {
	if req.Remote != "" || req.RemoteTopic != "" || req.From != "" || req.Lanes != 0 || req.DryRun {
		return wire.Topic{}, invalid("remote_topic, from, lanes and dry_run need a remote")
	}
	if req.Child == "" {
		return wire.Topic{}, invalid("child is missing")
	}
	if p := checkDelay("delay_ms", req.DelayMS); p != nil {
		return wire.Topic{}, p
	}
	up, ok := t.meta.Topic(parent)
	if !ok {
		return wire.Topic{}, noTopic()
	}
	child, ok := t.meta.Topic(req.Child)
	if !ok {
		return wire.Topic{}, wire.Refuse(wire.NotFound, "no such child topic")
	}
	offsets, err := t.watermarks(ctx, up)
	if err != nil {
		return wire.Topic{}, err
	}
	_, err = t.meta.Propose(ctx, meta.AttachChild{
		Parent: up.Name, ParentID: up.ID, Child: child.Name, ChildID: child.ID,
		Epoch: meta.NewID(), DelayMS: req.DelayMS, Offsets: offsets,
	})
	if err != nil {
		return wire.Topic{}, err
	}
	if now, still := t.meta.Topic(parent); still {
		up = now
	}
	return View(up, t.meta.Children(parent)), nil
}

// DetachLocal ends a local child's attach; it goes on as a topic with the records it has. A remote child is a Conflict.
func (t *Topics) DetachLocal(ctx context.Context, parent, child string) error {
	if _, ok := t.meta.Topic(parent); !ok {
		return noTopic()
	}
	c, ok := t.meta.Topic(child)
	if !ok || c.Parent != parent {
		return wire.Refuse(wire.NotFound, "no such child")
	}
	_, err := t.meta.Propose(ctx, meta.DetachChild{Parent: parent, Child: child, Epoch: c.AttachEpoch})
	return err
}

func noTopic() *wire.Problem { return wire.Refuse(wire.NotFound, "no such topic") }
