package meta

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-memdb"
)

// Limits that the state itself holds, whoever proposes (api.md Children; seed: Remote replication constants).
const (
	MaxChildren       = 108
	MaxRemotes        = 64
	MaxRemoteChildren = 16
	MaxSkips          = 4000
	MaxSchemas        = 1000 // versions of a topic's schema
	SaltBytes         = 32
	HourMS            = int64(60 * 60 * 1000)
	RemoteFloorMS     = 24 * HourMS // retention floor of a parent with remote children
)

const (
	tableTopics  = "topics"
	tableUsers   = "users"
	tableRemotes = "remotes"
	tableMembers = "members"
	tableSalt    = "salt"
	tableTrail   = "trail"
	tableCluster = "cluster"

	indexKey    = "id" // memdb's name of a primary index
	indexFold   = "fold"
	indexID     = "topic_id"
	indexParent = "parent"
)

// saltRow is the one row of the salt table.
type saltRow struct {
	Key  string
	Salt []byte
}

// State is the whole metadata of the cluster as this node has applied it. Reads see one applied entry or the next, never half
// of one, and never wait for a write. All methods may be called at once from any goroutine, Apply and restore from one at a time.
type State struct {
	db *memdb.MemDB

	mu             sync.Mutex // guards the rest
	applied        uint64
	remotesVersion uint64
	changed        chan struct{}
}

// NewState makes an empty state.
func NewState() *State {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		panic(fmt.Sprintf("meta: the schema of the state is broken: %v", err))
	}
	return &State{db: db, changed: make(chan struct{})}
}

func schema() *memdb.DBSchema {
	byField := func(name, field string, lower, unique, optional bool) *memdb.IndexSchema {
		return &memdb.IndexSchema{
			Name: name, Unique: unique, AllowMissing: optional,
			Indexer: &memdb.StringFieldIndex{Field: field, Lowercase: lower},
		}
	}
	table := func(name, key string, more ...*memdb.IndexSchema) *memdb.TableSchema {
		t := &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{}}
		for _, i := range append(more, byField(indexKey, key, false, true, false)) {
			t.Indexes[i.Name] = i
		}
		return t
	}
	return &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableTopics: table(tableTopics, "Name",
			byField(indexFold, "Name", true, true, false),
			byField(indexID, "ID", false, true, false),
			byField(indexParent, "Parent", false, false, true)),
		tableUsers:   table(tableUsers, "Name"),
		tableRemotes: table(tableRemotes, "Name"),
		tableMembers: table(tableMembers, "ID"),
		tableSalt:    table(tableSalt, "Key"),
		tableTrail:   table(tableTrail, "Key"),
		tableCluster: table(tableCluster, "Key"),
	}}
}

// Topic returns the topic, or stub, of exactly this name.
func (s *State) Topic(name string) (Topic, bool) {
	return one[Topic](s, tableTopics, indexKey, name)
}

// TopicByID returns the topic, or stub, of this incarnation (BRK-09).
func (s *State) TopicByID(id string) (Topic, bool) { return one[Topic](s, tableTopics, indexID, id) }

// Topics returns all topics and stubs in name order (byte order).
func (s *State) Topics() []Topic { return all[Topic](s, tableTopics, indexKey) }

// TopicsAfter returns up to limit topics and stubs whose names come after a name, in name order (byte order).
func (s *State) TopicsAfter(name string, limit int) []Topic {
	it, err := s.db.Txn(false).LowerBound(tableTopics, indexKey, name)
	if err != nil {
		panic(fmt.Sprintf("meta: list topics after a name: %v", err))
	}
	out := make([]Topic, 0, min(limit, 128))
	for r := it.Next(); r != nil && len(out) < limit; r = it.Next() {
		if t := r.(*Topic); t.Name != name {
			out = append(out, *t)
		}
	}
	return out
}

// Children returns the local and remote children of a parent in name order; none when there is no such topic.
func (s *State) Children(parent string) []Topic {
	if parent == "" {
		return nil
	}
	return all[Topic](s, tableTopics, indexParent, parent)
}

// User returns the user of this name.
func (s *State) User(name string) (User, bool) { return one[User](s, tableUsers, indexKey, name) }

// Users returns all users in name order.
func (s *State) Users() []User { return all[User](s, tableUsers, indexKey) }

// Remote returns the remote of this name.
func (s *State) Remote(name string) (Remote, bool) {
	return one[Remote](s, tableRemotes, indexKey, name)
}

// Remotes returns all remotes in name order.
func (s *State) Remotes() []Remote { return all[Remote](s, tableRemotes, indexKey) }

// Links returns the stubs that use a remote, in name order.
func (s *State) Links(remote string) []Topic {
	txn := s.db.Txn(false)
	return deref(tx{txn}.links(remote))
}

// Member returns the member of this node ID.
func (s *State) Member(id string) (Member, bool) {
	return one[Member](s, tableMembers, indexKey, id)
}

// Members returns all members in ID order.
func (s *State) Members() []Member { return all[Member](s, tableMembers, indexKey) }

// Salt is the cluster's salt of CRD-02, nil before the first remote was created.
func (s *State) Salt() []byte {
	row, ok := one[saltRow](s, tableSalt, indexKey, tableSalt)
	if !ok {
		return nil
	}
	return row.Salt
}

// RemotesVersion moves with every create, change, re-seal and delete of a remote, and with a restore (CRD-07). It is this
// process's own count: compare it with an earlier value of the same State only.
func (s *State) RemotesVersion() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remotesVersion
}

// Applied is the Raft index of the newest entry that was applied, or refused, here.
func (s *State) Applied() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

// Changed is closed at the next entry or restore. Take it before reading what is to be watched, then no change is missed.
func (s *State) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// advance tells everyone that the entry of this index is done. The caller has committed before.
func (s *State) advance(index uint64, remotes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = index
	if remotes {
		s.remotesVersion++
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func one[R any](s *State, table, index, key string) (R, bool) {
	// A read transaction of memdb is a pointer to an immutable tree: nothing has to be given back.
	r := first[R](s.db.Txn(false), table, index, key)
	if r == nil {
		var none R
		return none, false
	}
	return *r, true
}

func all[R any](s *State, table, index string, args ...any) []R {
	return deref(rows[R](s.db.Txn(false), table, index, args...))
}

func deref[R any](rs []*R) []R {
	out := make([]R, 0, len(rs))
	for _, r := range rs {
		out = append(out, *r)
	}
	return out
}

// first and rows panic on an error of memdb, which it returns only for a table, index or argument that the schema does not have.
func first[R any](txn *memdb.Txn, table, index, key string) *R {
	got, err := txn.First(table, index, key)
	if err != nil {
		panic(fmt.Sprintf("meta: read %s by %s: %v", table, index, err))
	}
	if got == nil {
		return nil
	}
	return got.(*R)
}

func rows[R any](txn *memdb.Txn, table, index string, args ...any) []*R {
	it, err := txn.Get(table, index, args...)
	if err != nil {
		panic(fmt.Sprintf("meta: list %s by %s: %v", table, index, err))
	}
	var out []*R
	for r := it.Next(); r != nil; r = it.Next() {
		out = append(out, r.(*R))
	}
	return out
}
