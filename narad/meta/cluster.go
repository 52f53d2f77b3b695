package meta

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"narad.example/narad/wire"
)

// clusterRow is the one row of the cluster table.
type clusterRow struct{ Key, ID string }

// ClusterID is the ID that the cluster has given itself, empty until then. It never changes.
func (s *State) ClusterID() string {
	row, _ := one[clusterRow](s, tableCluster, indexKey, tableCluster)
	return row.ID
}

func nameCluster(t tx, e NameCluster) *wire.Problem {
	if e.ID == "" {
		return wire.Refuse(wire.Invalid, "a cluster needs an ID")
	}
	if t.cluster() == nil {
		t.put(tableCluster, &clusterRow{Key: tableCluster, ID: e.ID})
	}
	return nil
}

// Where a folder keeps whose it is, beside Raft's own terms. The log alone would not tell: a replica that starts knows no commit index,
// and applies nothing before a leader told it one.
var (
	keyCluster = []byte("narad/cluster")
	keyNode    = []byte("narad/node")
)

// Folder is whose a metadata folder is.
type Folder struct {
	Fresh   bool   // no Raft state yet
	Cluster string // the cluster's ID, empty when it was not known here
	Node    string // the node that wrote it, empty for a release that did not write it down
}

// Look reads whose a metadata folder is and writes nothing. A folder that is not there is fresh.
func Look(dir string) (Folder, error) {
	path := filepath.Join(dir, "raft.db")
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return Folder{Fresh: true}, nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 5 * time.Second, ReadOnly: true})
	if err != nil {
		return Folder{}, fmt.Errorf("open the Raft log: %w", err)
	}
	snaps, err := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
	f := Folder{Fresh: len(snaps) == 0}
	err = errors.Join(err, db.View(func(tx *bbolt.Tx) error {
		logs, conf := tx.Bucket([]byte("logs")), tx.Bucket([]byte("conf"))
		if logs == nil || conf == nil { // its maker died at once
			return nil
		}
		first, _ := logs.Cursor().First()
		f.Cluster, f.Node = string(conf.Get(keyCluster)), string(conf.Get(keyNode))
		f.Fresh = f.Fresh && first == nil && conf.Get([]byte("CurrentTerm")) == nil
		return nil
	}), db.Close())
	return f, err
}

func remembered(s raft.StableStore, key []byte) (string, error) {
	v, err := s.Get(key)
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return "", fmt.Errorf("read whose the Raft log is: %w", err)
	}
	return string(v), nil
}

// remember writes down whose the folder is, once.
func remember(s raft.StableStore, key []byte, value string) error {
	have, err := remembered(s, key)
	if err != nil || have == value || value == "" {
		return err
	}
	if err = s.Set(key, []byte(value)); err != nil {
		return fmt.Errorf("write down whose the Raft log is: %w", err)
	}
	return nil
}

// Cluster is the ID of the cluster that this folder belongs to, empty while it is not known: also before anything was applied.
func (s *Store) Cluster() string { return s.greeter.known() }

// keep writes the cluster's ID down and compares it with others' from now on.
func (s *Store) keep(cluster string) {
	if err := remember(s.bolt, keyCluster, cluster); err != nil {
		s.log.Error("the cluster's ID was not written down; after a restart this node may take another cluster for its own", slog.Any("error", err))
	}
	s.greeter.learn(cluster)
}
