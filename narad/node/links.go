package node

import (
	"context"

	"narad.example/narad/fanout"
	"narad.example/narad/meta"
	"narad.example/narad/remote/sender"
	"narad.example/narad/remote/vault"
)

// remotes shows the vault's entries to the sender.
type remotes struct{ vault *vault.Vault }

// Remote is the remote as this node can use it now.
func (r remotes) Remote(name string) sender.Remote {
	e := r.vault.Entry(name)
	out := sender.Remote{State: e.State, CredentialVersion: e.CredentialVersion, ID: e.ID, Limits: e.Limits}
	if e.Client != nil {
		out.Client = e.Client
	}
	return out
}

// Changed is closed when any entry is replaced.
func (r remotes) Changed() <-chan struct{} { return r.vault.Changed() }

// openLink opens the sender's cursor for one parent partition of a remote child.
func (n *Node) openLink(child meta.Topic, partition int, marks []int64) (fanout.Sink, error) {
	link := child.Remote
	c := n.remote.senders.Open(sender.LinkConfig{
		Parent: child.Parent, Child: child.Name, Remote: link.Remote, TargetTopic: link.Topic, TargetID: link.TargetID,
		Epoch: child.AttachEpoch, Partition: partition, Lanes: link.Lanes, Marks: marks,
		Live:    func() sender.LinkLive { return n.live(child.Name, child.AttachEpoch, partition) },
		Changed: n.meta.Changed,
	})
	return &linkSink{Cursor: c}, nil
}

// live is what may change on a link while its cursor runs. A link that is gone is paused: its cursor is about to be stopped
// and must start nothing.
func (n *Node) live(child, epoch string, partition int) sender.LinkLive {
	t, ok := n.meta.Topic(child)
	if !ok || t.Remote == nil || t.AttachEpoch != epoch {
		return sender.LinkLive{Paused: true}
	}
	l := sender.LinkLive{Paused: t.Remote.Paused, TargetID: t.Remote.TargetID}
	if len(t.Remote.Skip[partition]) > 0 {
		l.Skips = func(offset int64) bool { return t.Remote.Skips(partition, offset) }
	}
	return l
}

// linkSink is a sender's cursor as a fan-out sink. Records are handed over by a copy of their headers, not of their bytes.
type linkSink struct {
	*sender.Cursor
	records []sender.Record
}

// Ship hands a slab to the sender.
func (s *linkSink) Ship(ctx context.Context, slab *fanout.Slab) fanout.Outcome {
	s.records = s.records[:0]
	for i := range slab.Records {
		r := &slab.Records[i]
		s.records = append(s.records, sender.Record{Offset: r.Offset, Key: r.Key, Payload: r.Payload})
	}
	outcome := s.Cursor.Ship(ctx, s.records, func() {
		slab.Release()
		clear(s.records) // a link that waits with copies must not keep the slab's memory
	})
	clear(s.records)
	switch outcome {
	case sender.Committed:
		return fanout.Committed
	case sender.ReadAgain:
		return fanout.ReadAgain
	}
	return fanout.Stopped
}

// Status is the cursor's state.
func (s *linkSink) Status() fanout.SinkStatus {
	st := s.Cursor.Status()
	return fanout.SinkStatus{
		State: st.State, Blocked: st.Blocked,
		LastSuccess: st.LastSuccess, LastCheck: st.LastCheck, Unverified: st.Unverified,
	}
}
