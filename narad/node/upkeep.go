package node

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/schema"
)

// retain deletes segments that are older than their topic's retention, once a minute: time alone makes them old, so no watch
// could tell.
func (n *Node) retain(ctx context.Context) error {
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		for _, t := range n.meta.Topics() {
			if t.RetentionMS == 0 {
				continue
			}
			for _, p := range n.owned.mine(&t) {
				n.retainOne(&t, p)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (n *Node) retainOne(t *meta.Topic, p int) {
	part, err := n.owned.open(t, p)
	if err == nil {
		_, err = part.Retain(time.Duration(t.RetentionMS) * time.Millisecond)
	}
	if err != nil {
		n.metrics.Broker.Errors.WithLabelValues("retention", "segment").Inc()
		n.log.Error("retention failed; tried again in a minute", slog.String("topic", t.Name), slog.Int("partition", p), slog.Any("error", err))
	}
}

// rest closes the files of partitions that were idle for so long. Only time makes a partition idle, so no watch could tell.
func (n *Node) rest(ctx context.Context, idle time.Duration) error {
	tick := time.NewTicker(min(idle/2, restEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := n.store.Rest(ctx, idle); err != nil && ctx.Err() == nil {
			n.metrics.Broker.Errors.WithLabelValues("storage", "idle").Inc()
			n.log.Warn("the files of an idle partition could not be closed", slog.Any("error", err))
		}
	}
}

// sweep deletes the data of topic incarnations that are gone, and forgets their schemas. Nothing goes before the replica is current and a barrier has
// passed (broker.md: Metadata), so that a stale replica destroys nothing.
func (n *Node) sweep(ctx context.Context) error {
	again := time.NewTimer(0)
	<-again.C
	defer again.Stop()
	for {
		changed := n.meta.Changed()
		n.schemas.Keep(n.hasSchema)
		var due <-chan time.Time
		for _, id := range n.gone() {
			if err := n.dropTopic(ctx, id); err != nil && ctx.Err() == nil {
				n.log.Warn("data of a deleted topic stays for now; tried again in a minute",
					slog.String("topic_id", id), slog.Any("error", err))
				again.Reset(sweepAgain)
				due = again.C
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-due:
		}
	}
}

// validate checks a payload against the schema of its topic (BRK-11).
func (n *Node) validate(ctx context.Context, t meta.Topic, payload []byte) error {
	s, version := t.Schema()
	return n.schemas.Validate(ctx, schema.Subject{TopicID: t.ID, Version: version, Sum: s.Sum, Raw: s.Body}, payload)
}

func (n *Node) hasSchema(topicID string) bool {
	t, ok := n.meta.TopicByID(topicID)
	return ok && len(t.Schemas) > 0
}

// gone lists the topic incarnations that have data here and no record.
func (n *Node) gone() []string {
	dirs, err := n.fs.ReadDir(n.topicsDir())
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			n.log.Error("the data folder cannot be listed", slog.Any("error", err))
		}
		return nil
	}
	var out []string
	for _, d := range dirs {
		if d.IsDir() && !n.owned.known(d.Name()) {
			out = append(out, d.Name())
		}
	}
	return out
}

func (n *Node) dropTopic(ctx context.Context, id string) error {
	if gone, err := n.Gone(ctx, id); err != nil || !gone {
		return err
	}
	// A cursor that still writes its position into a folder that goes would make it anew.
	for _, p := range n.partitionsIn(id) {
		err := n.runner.Hold(ctx, id, p)
		defer n.runner.Release(id, p)
		if err != nil {
			return err
		}
	}
	if err := n.queues.Forget(id); err != nil {
		return err
	}
	return n.store.Drop(id)
}

// partitionsIn lists the partitions of a topic incarnation that have files here.
func (n *Node) partitionsIn(id string) []int {
	dirs, err := n.fs.ReadDir(filepath.Join(n.topicsDir(), id))
	if err != nil {
		return nil // Drop meets the same error and returns it
	}
	var out []int
	for _, d := range dirs {
		if p, err := strconv.Atoi(d.Name()); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// watchPlaintext warns when this node holds remotes over plaintext Raft, and keeps the gauge (WRT-06).
func (n *Node) watchPlaintext(ctx context.Context) error {
	warned := false
	for {
		changed := n.meta.Changed()
		holds := len(n.meta.Remotes()) > 0
		if holds && !warned {
			n.log.Warn("this node holds remotes over plaintext Raft: set cluster.tls_cert_file, cluster.tls_key_file and cluster.tls_ca_file")
			warned = true
		}
		gauge := 0.0
		if holds {
			gauge = 1
		}
		n.metrics.Remote.PlaintextRaft.Set(gauge)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// Gone asks the Raft leader, behind a barrier, whether a topic incarnation is gone (ingress.Confirmer).
func (n *Node) Gone(ctx context.Context, topicID string) (bool, error) {
	if err := n.current(ctx); err != nil {
		return false, err
	}
	return n.meta.CaughtUp() && !n.owned.known(topicID), nil
}

// Confirm is fanout's question whether a cursor may start: owner and epoch hold behind a barrier (CUR-15, CUR-17).
func (n *Node) Confirm(ctx context.Context, parentID string, partition int, child, epoch string) (bool, error) {
	if err := n.current(ctx); err != nil {
		return false, err
	}
	parent, ok := n.meta.TopicByID(parentID)
	c, have := n.meta.Topic(child)
	return ok && have && n.meta.CaughtUp() && n.moves.Serves(parentID, partition) && c.AttachEpoch == epoch && c.Parent == parent.Name &&
		partition < len(parent.Nodes) && parent.Nodes[partition] == n.id, nil
}

func (n *Node) topicsDir() string { return filepath.Join(n.cfg.Storage.DataDir, "topics") }
