package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

// OpMeet asks a node what it knows of the one that asks, which is about to start.
const OpMeet = "Meet"

type meeting struct {
	Node string `json:"node"`
}

// met is the answer. Addr is where the configuration has the Raft of the node that asks, empty when it does not have it.
type met struct {
	Node    string `json:"node"`
	Cluster string `json:"cluster,omitempty"`
	Addr    string `json:"addr,omitempty"`
}

// MeetMeta is what the answer needs of the metadata; *meta.Store is one.
type MeetMeta interface {
	Cluster() string
	Servers() []meta.Server
}

// HandleMeet answers OpMeet.
func HandleMeet(node string, m MeetMeta) peer.Handler {
	return func(_ context.Context, body []byte) ([]byte, error) {
		var q meeting
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, wire.Refuse(wire.Invalid, "a meeting that does not decode")
		}
		a := met{Node: node, Cluster: m.Cluster()}
		for _, s := range m.Servers() {
			if s.ID == q.Node {
				a.Addr = s.Addr
			}
		}
		return json.Marshal(a)
	}
}

// Meeting is a node that is about to start and asks around before it opens or writes anything.
type Meeting struct {
	Call   func(ctx context.Context, addr, op string, body []byte) ([]byte, error)
	ID     string
	Raft   string            // where the others will reach its Raft
	Own    []string          // where they will reach its node RPC, and where cluster.peers has it
	Peers  map[string]string // RPC addresses of the other nodes of cluster.peers, by ID
	Folder meta.Folder
	Dir    string // of the folder, for errors
	First  bool   // it is one of cluster.initial_members
}

const meetWait = 2 * time.Second

// Ask returns why the node must not start; the error names the setting. Whoever does not answer within two seconds, or is of a release that
// does not know the question, says nothing: a cluster that starts as a whole has nobody to ask.
func (m *Meeting) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, meetWait)
	defer cancel()
	body, err := json.Marshal(meeting{m.ID})
	if err != nil {
		return err
	}
	type asked struct{ id, addr string }
	var list []asked
	for _, id := range slices.Sorted(maps.Keys(m.Peers)) { // the same trouble is the same error
		list = append(list, asked{id, m.Peers[id]})
	}
	for _, addr := range m.Own {
		list = append(list, asked{m.ID, addr})
	}
	against := make([]error, len(list))
	var all sync.WaitGroup
	for i, a := range list {
		all.Go(func() { against[i] = m.one(ctx, a.id, a.addr, body) })
	}
	all.Wait()
	for _, err = range against {
		if err != nil {
			return err
		}
	}
	return nil
}

// one asks one node and says what speaks against a start.
func (m *Meeting) one(ctx context.Context, id, addr string, body []byte) error {
	raw, err := m.Call(ctx, addr, OpMeet, body)
	if errors.Is(err, peer.ErrCluster) {
		return fmt.Errorf("setting storage.data_dir: %s holds the metadata of another cluster than node %s of cluster.peers: "+
			"bring this node's own folder back, or name an empty one: %w", m.Dir, id, err)
	}
	var a met
	answered := err == nil && json.Unmarshal(raw, &a) == nil
	switch {
	case !answered:
		return nil
	case a.Node == m.ID:
		return fmt.Errorf("setting cluster.node_id: a node %s runs already and answers at %s: choose another ID, or stop that one", m.ID, addr)
	case !m.Folder.Fresh || !m.First || a.Cluster == "":
		return nil // it makes no cluster
	case a.Addr == "":
		return fmt.Errorf("setting cluster.initial_members: node %s is of a cluster that runs already and does not have node %s: "+
			"name the members that made it, without this node, which then asks to be let in", id, m.ID)
	case a.Addr != m.Raft:
		return fmt.Errorf("setting cluster.node_id: node %s of the cluster is at %s and this one would be at %s: "+
			"choose another ID, or see cluster.peers and cluster.advertise_addr", m.ID, a.Addr, m.Raft)
	}
	return nil
}
