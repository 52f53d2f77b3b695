package access

import (
	"strings"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Identity is who a request is from. With security off it is an admin without a name.
type Identity struct {
	Name  string
	Admin bool
	Root  bool

	grants []wire.Grant
}

func identify(u *meta.User) Identity {
	id := Identity{Name: u.Name, Root: u.Root, Admin: u.Root, grants: u.Grants}
	for i := range u.Grants {
		if u.Grants[i].Action == wire.ActionAdmin {
			id.Admin = true
		}
	}
	return id
}

// Granted tells whether a grant of this action, or being an admin, covers a topic name. It needs no such topic.
func (id *Identity) Granted(action, name string) bool {
	if id.Admin {
		return true
	}
	for i := range id.grants {
		if id.grants[i].Action == action && matches(id.grants[i].Patterns, name) {
			return true
		}
	}
	return false
}

// Touches tells whether a grant of any action, or being an admin, covers a topic name.
func (id *Identity) Touches(name string) bool {
	if id.Admin {
		return true
	}
	for i := range id.grants {
		if matches(id.grants[i].Patterns, name) {
			return true
		}
	}
	return false
}

// Owns tells whether the identity may change, delete and attach: it owns the topic, or is an admin. A stub has its parent's owner.
func (id *Identity) Owns(t *Topic) bool { return id.Admin || t.Owner != "" && t.Owner == id.Name }

// Reads tells whether the identity may read the topic's record and listing.
func (id *Identity) Reads(t *Topic) bool { return id.Owns(t) || id.Touches(t.Name) }

// matches tells whether a pattern is the name, or is a prefix of it that ends in '*'.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		} else if p == name {
			return true
		}
	}
	return false
}

// Topic is what a handler must know of a topic before it asks anyone for anything.
type Topic struct {
	Name    string
	ID      string
	Owner   string // of a stub its parent's
	Parent  string
	Remote  string // name of the remote of a stub, else empty
	DelayMS int64  // of a delay child
}

// Find reads a topic, or stub, from this node's replica.
func (c *Control) Find(name string) (Topic, bool) {
	m, ok := c.state.Topic(name)
	if !ok {
		return Topic{}, false
	}
	t := Topic{Name: m.Name, ID: m.ID, Owner: m.Owner, Parent: m.Parent, DelayMS: m.FanoutDelayMS}
	if m.IsStub() {
		t.Remote = m.Remote.Remote
		t.Owner = c.OwnerOf(m.Parent)
	}
	return t, true
}

// OwnerOf is the owner of a topic, empty when it has none or there is no such topic.
func (c *Control) OwnerOf(name string) string {
	m, _ := c.state.Topic(name)
	return m.Owner
}

// Linked tells whether this node's replica shows a remote child under the topic (WRT-07).
func (c *Control) Linked(name string) bool {
	children := c.state.Children(name)
	for i := range children {
		if children[i].IsStub() {
			return true
		}
	}
	return false
}
