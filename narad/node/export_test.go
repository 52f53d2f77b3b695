package node

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"narad.example/narad/fanout"
	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// FoldLag folds owners' reports.
func FoldLag(parent, child meta.Topic, reports []fanout.CursorStats, silent []string) link.LagReport {
	return foldLag(parent, child, reports, silent)
}

// CursorsAt asks a node for its cursors as a node that has applied this index would.
func (n *Node) CursorsAt(ctx context.Context, child string, applied uint64) (int, error) {
	a, err := n.serveCursorStats(ctx, cursorsAsk{Children: []string{child}, Applied: applied})
	return len(a.Cursors), err
}

// DescribeMetrics names every series that the node has registered.
func (n *Node) DescribeMetrics(ch chan<- *prometheus.Desc) { n.metrics.Describe(ch) }

// Applied is the index that this node has applied.
func (n *Node) Applied() uint64 { return n.meta.Applied() }

// Cluster is the ID that the node knows of its cluster.
func (n *Node) Cluster() string { return n.meta.Cluster() }

// Snapshot compacts the metadata's log.
func (n *Node) Snapshot() error { return n.meta.Snapshot() }

// Line is what an owner remembers of the commits that others send.
type Line struct{ commitLines }

// Enter tells whether a commit is the newest of its line.
func (l *Line) Enter(from, life string, number uint64) bool {
	return l.enter(commitHead{From: from, Life: life, Number: number, TopicID: "t"})
}

// CommitOverTheWire encodes and decodes a commit.
func CommitOverTheWire(recs []partition.Record) ([]partition.Record, []byte, error) {
	b, err := encodeCommit(commitHead{TopicID: "t", Partition: 3}, recs)
	if err != nil {
		return nil, nil, err
	}
	_, out, err := decodeCommit(b)
	return out, b, err
}

// DecodeCommit reads a commit's body.
func DecodeCommit(b []byte) error {
	_, _, err := decodeCommit(b)
	return err
}

// CommitAs is a commit of one record as another node would send it.
func (n *Node) CommitAs(ctx context.Context, topicID string, p int, life string, number uint64) error {
	body, err := encodeCommit(commitHead{TopicID: topicID, Partition: p, From: "other", Life: life, Number: number},
		[]partition.Record{{Payload: []byte("x")}})
	if err == nil {
		_, err = n.serveCommit(ctx, body)
	}
	return err
}

// Moving tells whether a topic has a move.
func (n *Node) Moving(topic string) bool {
	t, _ := n.meta.Topic(topic)
	return len(t.Moves) > 0
}

// LeaderAway is what a client hears of a leader that did not answer.
func LeaderAway(err error, reads bool) error { return leaderAway(err, reads) }

// Admit lets a node in that may never come. Only on the leader.
func (n *Node) Admit(ctx context.Context, id, addr string) error {
	return n.meta.AddServer(ctx, id, addr)
}

// Asked is what a dispatcher knows of the owners that it commits to.
type Asked struct{ router }

// Enter tells whether a commit to an owner may go.
func (a *Asked) Enter(owner string) bool { return a.enter(owner) }

// Leave takes the end of one.
func (a *Asked) Leave(owner string, err error) { a.leave(owner, err) }

// GiveBack gives leased records back to their owners.
func (n *Node) GiveBack(ctx context.Context, topic string, out []wire.Delivery) {
	(&consumer{n: n}).giveBack(ctx, topic, out)
}
