package meta

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hashicorp/go-memdb"
	"github.com/hashicorp/raft"
)

// snapshotFormat is the format of a snapshot: a JSON stream of a header, one value per record and a closing count. A release
// that writes another format counts it up; a replica refuses what it does not know.
const snapshotFormat = 1

var errSnapshot = errors.New("meta: snapshot that this release cannot restore")

type snapshotHeader struct {
	Format  int    `json:"format"`
	Applied uint64 `json:"applied"`
	Salt    []byte `json:"salt,omitempty"`
	Cluster string `json:"cluster,omitempty"` // its ID
}

// snapshotRecord has exactly one member set.
type snapshotRecord struct {
	Topic  *Topic  `json:"topic,omitempty"`
	User   *User   `json:"user,omitempty"`
	Remote *Remote `json:"remote,omitempty"`
	Member *Member `json:"member,omitempty"`
	Trace  *Trace  `json:"trace,omitempty"` // in the order of the indexes; a snapshot of a release without a trail has none
	End    *int    `json:"end,omitempty"`   // the number of records before it
}

// snapshot is the state at one index. It costs nothing to take and does not hold up later entries.
type snapshot struct {
	txn    *memdb.Txn
	header snapshotHeader
}

func (s *State) snapshot() *snapshot {
	txn := s.db.Txn(false)
	h := snapshotHeader{Format: snapshotFormat, Applied: s.Applied()}
	if row := (tx{txn}).salt(); row != nil {
		h.Salt = row.Salt
	}
	if row := (tx{txn}).cluster(); row != nil {
		h.Cluster = row.ID
	}
	return &snapshot{txn: txn, header: h}
}

func (n *snapshot) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	if err := enc.Encode(n.header); err != nil {
		return fmt.Errorf("write the snapshot's header: %w", err)
	}
	var records []snapshotRecord
	for _, r := range rows[Topic](n.txn, tableTopics, indexKey) {
		records = append(records, snapshotRecord{Topic: bare(r)})
	}
	for _, r := range rows[User](n.txn, tableUsers, indexKey) {
		records = append(records, snapshotRecord{User: r})
	}
	for _, r := range rows[Remote](n.txn, tableRemotes, indexKey) {
		records = append(records, snapshotRecord{Remote: r})
	}
	for _, r := range rows[Member](n.txn, tableMembers, indexKey) {
		records = append(records, snapshotRecord{Member: r})
	}
	for _, r := range (tx{n.txn}).trail() {
		records = append(records, snapshotRecord{Trace: &r})
	}
	count := len(records)
	for _, r := range append(records, snapshotRecord{End: &count}) {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write a record of the snapshot: %w", err)
		}
	}
	return nil
}

// Persist writes the snapshot for Raft; a failed one is cancelled and leaves nothing.
func (n *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := n.write(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release has nothing to give back.
func (n *snapshot) Release() {}

// restore replaces the whole state by a snapshot, in one transaction, or changes nothing. RemotesVersion moves (CRD-07). A release whose
// newest entry type is below those of remotes knows nothing of what they leave behind.
func (s *State) restore(r io.Reader, newest EntryType) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var h snapshotHeader
	if err := dec.Decode(&h); err != nil {
		return fmt.Errorf("%w: its header does not decode", errSnapshot)
	}
	if h.Format != snapshotFormat {
		return fmt.Errorf("%w: format %d", errSnapshot, h.Format)
	}
	if h.Cluster != "" && newest < TypeNameCluster {
		return fmt.Errorf("%w: its header is of a newer release", errSnapshot)
	}
	txn := s.db.Txn(true)
	defer txn.Abort() // does nothing after Commit
	t := tx{txn}
	for name := range s.db.DBSchema().Tables {
		if _, err := txn.DeleteAll(name, indexKey); err != nil {
			return fmt.Errorf("empty the table %s: %w", name, err)
		}
	}
	if len(h.Salt) > 0 {
		t.put(tableSalt, &saltRow{Key: tableSalt, Salt: h.Salt})
	}
	if h.Cluster != "" {
		t.put(tableCluster, &clusterRow{Key: tableCluster, ID: h.Cluster})
	}
	for count := 0; ; count++ {
		var rec snapshotRecord
		if err := dec.Decode(&rec); err != nil {
			return fmt.Errorf("%w: record %d does not decode", errSnapshot, count)
		}
		if rec.End != nil {
			if *rec.End != count {
				return fmt.Errorf("%w: %d records of %d", errSnapshot, count, *rec.End)
			}
			break
		}
		if rec.remote() && newest < TypePutRemote || rec.schemas() && newest < TypePutSchema || !rec.restore(t) {
			return fmt.Errorf("%w: record %d is of no known kind", errSnapshot, count)
		}
	}
	t.adopt()
	txn.Commit()
	s.advance(h.Applied, true)
	return nil
}

// bare is a topic's record without what its parent's has as well: a history of schemas stands in a snapshot once.
func bare(t *Topic) *Topic {
	if t.Parent == "" || len(t.Schemas) == 0 {
		return t
	}
	n := *t
	n.Schemas = nil
	return &n
}

// adopt gives every local child its parent's schemas again.
func (t tx) adopt() {
	for _, c := range rows[Topic](t.txn, tableTopics, indexKey) {
		if c.Parent == "" || c.IsStub() {
			continue
		}
		if parent := t.topic(c.Parent); parent != nil && len(parent.Schemas) > 0 {
			t.putSchemas(c, parent.Schemas)
		}
	}
}

// schemas tells whether PutSchema made the record.
func (r *snapshotRecord) schemas() bool { return r.Topic != nil && len(r.Topic.Schemas) > 0 }

// remote tells whether entries of the remote plane made the record.
func (r *snapshotRecord) remote() bool {
	return r.Remote != nil || r.Topic != nil && r.Topic.Remote != nil
}

func (r *snapshotRecord) restore(t tx) bool {
	switch {
	case r.Topic != nil && r.Topic.Name != "" && r.Topic.ID != "":
		t.put(tableTopics, r.Topic)
	case r.User != nil && r.User.Name != "":
		t.put(tableUsers, r.User)
	case r.Remote != nil && r.Remote.Name != "":
		t.put(tableRemotes, r.Remote)
	case r.Member != nil && r.Member.ID != "":
		t.put(tableMembers, r.Member)
	case r.Trace != nil && r.Trace.Index != 0 && r.Trace.Event != "":
		t.putTrail(append(slices.Clone(t.trail()), *r.Trace))
	default:
		return false
	}
	return true
}
