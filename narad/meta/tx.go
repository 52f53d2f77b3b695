package meta

import (
	"fmt"

	"github.com/hashicorp/go-memdb"
)

// tx is one transaction as the rules of the entries see it. Rows that it returns are never written to: a rule copies, changes
// the copy and puts it.
type tx struct{ txn *memdb.Txn }

func (t tx) topic(name string) *Topic   { return first[Topic](t.txn, tableTopics, indexKey, name) }
func (t tx) folded(name string) *Topic  { return first[Topic](t.txn, tableTopics, indexFold, name) }
func (t tx) topicID(id string) *Topic   { return first[Topic](t.txn, tableTopics, indexID, id) }
func (t tx) user(name string) *User     { return first[User](t.txn, tableUsers, indexKey, name) }
func (t tx) remote(name string) *Remote { return first[Remote](t.txn, tableRemotes, indexKey, name) }
func (t tx) salt() *saltRow             { return first[saltRow](t.txn, tableSalt, indexKey, tableSalt) }

func (t tx) cluster() *clusterRow {
	return first[clusterRow](t.txn, tableCluster, indexKey, tableCluster)
}

func (t tx) children(parent string) []*Topic {
	return rows[Topic](t.txn, tableTopics, indexParent, parent)
}

func (t tx) links(remote string) []*Topic {
	var out []*Topic
	for _, c := range rows[Topic](t.txn, tableTopics, indexKey) {
		if c.Remote != nil && c.Remote.Remote == remote {
			out = append(out, c)
		}
	}
	return out
}

// put stores a row that nobody writes to any more.
func (t tx) put(table string, row any) {
	if err := t.txn.Insert(table, row); err != nil {
		panic(fmt.Sprintf("meta: put into %s: %v", table, err))
	}
}

func (t tx) drop(table string, row any) {
	if err := t.txn.Delete(table, row); err != nil {
		panic(fmt.Sprintf("meta: drop from %s: %v", table, err))
	}
}
