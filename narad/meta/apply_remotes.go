package meta

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"narad.example/narad/wire"
)

const (
	remoteRetry = "remote changed since it was read; try again"
	second      = time.Second // the Retry-After of a refusal that the next try passes
)

func putRemote(t tx, e PutRemote) *wire.Problem {
	n := e.Remote
	if n.Name == "" || n.ID == "" {
		return wire.Refuse(wire.Invalid, "a remote needs a name and an ID")
	}
	old := t.remote(n.Name)
	if e.FromRevision == 0 {
		return createRemote(t, n, old, e.Salt)
	}
	switch {
	case old == nil:
		return wire.Refuse(wire.NotFound, "no such remote")
	case old.ID != n.ID || old.Revision != e.FromRevision:
		return wire.Refuse(wire.Conflict, remoteRetry)
	}
	switch n.CredentialVersion {
	case old.CredentialVersion:
		limits := n.Limits
		n = *old
		n.Limits = limits
	case old.CredentialVersion + 1:
		n.CreatedAtMS, n.CreatedBy = old.CreatedAtMS, old.CreatedBy
	default:
		return wire.Refuse(wire.Conflict, remoteRetry)
	}
	n.Revision = old.Revision + 1
	t.put(tableRemotes, &n)
	return nil
}

func createRemote(t tx, n Remote, old *Remote, salt []byte) *wire.Problem {
	if old != nil {
		return wire.Refuse(wire.Conflict, "remote already exists")
	}
	if len(rows[Remote](t.txn, tableRemotes, indexKey)) >= MaxRemotes {
		return wire.Refuse(wire.Conflict, "a cluster has at most %d remotes", MaxRemotes)
	}
	row := t.salt()
	switch {
	case row == nil && len(salt) != SaltBytes:
		return wire.Refuse(wire.Invalid, "the first remote needs a salt of %d bytes", SaltBytes)
	case row == nil:
		t.put(tableSalt, &saltRow{Key: tableSalt, Salt: salt})
	case len(salt) > 0 && !bytes.Equal(row.Salt, salt):
		// Another first create came in between; the next try seals under the salt that stayed (DEC-30).
		return wire.Refuse(wire.Unavailable, "another remote was created at the same time; try again").After(second)
	}
	n.Revision, n.CredentialVersion = 1, 1
	t.put(tableRemotes, &n)
	return nil
}

func deleteRemote(t tx, e DeleteRemote) *wire.Problem {
	old := t.remote(e.Name)
	switch {
	case old == nil:
		return wire.Refuse(wire.NotFound, "no such remote")
	case old.ID != e.ID:
		return wire.Refuse(wire.Conflict, remoteRetry)
	}
	if links := t.links(e.Name); len(links) > 0 && !e.Force {
		names := make([]string, 0, len(links))
		for _, l := range links {
			names = append(names, l.Parent+"/"+l.Name)
		}
		return wire.Refuse(wire.Conflict, "the remote is in use; detach its links or use force").With("links", names)
	}
	t.drop(tableRemotes, old)
	return nil
}

func reseal(t tx, e Reseal) *wire.Problem {
	old := t.remote(e.Name)
	switch {
	case old == nil:
		return wire.Refuse(wire.NotFound, "no such remote")
	case old.ID != e.ID || old.CredentialVersion != e.CredentialVersion:
		return wire.Refuse(wire.Conflict, remoteRetry)
	}
	n := *old
	n.Ciphertext, n.KeyVersion, n.Fingerprint = e.Ciphertext, e.KeyVersion, e.Fingerprint
	t.put(tableRemotes, &n)
	return nil
}

func attachRemote(t tx, e AttachRemote) *wire.Problem {
	n := e.Topic
	n.Schemas = nil // the target's topic has one of its own
	if !n.IsStub() || n.Partitions != 0 || n.ID == "" || n.AttachEpoch == "" {
		return wire.Refuse(wire.Invalid, "a remote child needs an ID, an attach epoch, a remote and no partitions")
	}
	if p := nameFree(t, n.Name, n.ID); p != nil {
		return p
	}
	parent, p := parentFor(t, n.Parent, e.ParentID, n.FanoutDelayMS)
	if p != nil {
		return p
	}
	if parent.Partitions != e.ParentPartitions || len(n.AttachOffsets) != parent.Partitions {
		return wire.Refuse(wire.Conflict, Retry)
	}
	if t.remote(n.Remote.Remote) == nil {
		return wire.Refuse(wire.Conflict, "the remote was deleted meanwhile; try again")
	}
	stubs := 0
	for _, c := range t.children(parent.Name) {
		if c.IsStub() {
			stubs++
		}
	}
	switch {
	case stubs >= MaxRemoteChildren:
		return wire.Refuse(wire.Conflict, "a topic has at most %d remote children", MaxRemoteChildren)
	case !keeps(parent.RetentionMS, RemoteFloorMS):
		return wire.Refuse(wire.Conflict, "the parent's retention_ms must be at least %d for a remote child", RemoteFloorMS)
	}
	n.Owner, n.Nodes = "", nil
	t.put(tableTopics, &n)
	return nil
}

func updateRemote(t tx, e UpdateRemote) *wire.Problem {
	old, p := attached(t, e.Parent, e.Child, e.Epoch)
	if p != nil {
		return p
	}
	if !old.IsStub() || !e.oneChange() {
		return wire.Refuse(wire.Conflict, Retry)
	}
	if e.Detach {
		t.drop(tableTopics, old)
		return nil
	}
	n, link := *old, *old.Remote
	n.Remote = &link
	switch {
	case e.Pause != nil:
		link.Paused, link.PauseReason, link.PausedBy, link.PausedAtMS = true, e.Pause.Reason, e.Actor, e.Pause.AtMS
	case e.Skip != nil:
		parent := t.topic(e.Parent)
		if e.Skip.Partition < 0 || e.Skip.Partition >= parent.Partitions || e.Skip.Offset < 0 {
			return wire.Refuse(wire.Invalid, "the parent has no such partition or offset")
		}
		link.Skip = skipped(link.Skip, *e.Skip)
	default: // resume, or accept_target, which resumes too
		link.Paused, link.PauseReason, link.PausedBy, link.PausedAtMS = false, "", "", 0
		if e.AcceptTarget != "" {
			link.TargetID = e.AcceptTarget
		}
	}
	t.put(tableTopics, &n)
	return nil
}

func (e *UpdateRemote) oneChange() bool {
	set := 0
	for _, is := range []bool{e.Pause != nil, e.Resume, e.AcceptTarget != "", e.Skip != nil, e.Detach} {
		if is {
			set++
		}
	}
	return set == 1
}

// skipped returns a new map with one more skip. Past MaxSkips of a partition the lowest other offset goes: a cursor only moves
// forward, so that is the one passed longest ago, and the new one always stays (WRT-10).
func skipped(old map[int][]int64, s SkipOne) map[int][]int64 {
	m := maps.Clone(old)
	if m == nil {
		m = make(map[int][]int64, 1)
	}
	at, found := slices.BinarySearch(m[s.Partition], s.Offset)
	if found {
		return m
	}
	list := slices.Insert(slices.Clone(m[s.Partition]), at, s.Offset)
	if len(list) > MaxSkips {
		drop := 0
		if list[0] == s.Offset {
			drop = 1
		}
		list = slices.Delete(list, drop, drop+1)
	}
	m[s.Partition] = list
	return m
}
