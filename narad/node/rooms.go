package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/crypto/bcrypt"

	"narad.example/narad/access"
	"narad.example/narad/cluster"
	"narad.example/narad/config"
	"narad.example/narad/fanout"
	"narad.example/narad/ingress"
	"narad.example/narad/partition"
	"narad.example/narad/queue"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/sender"
	"narad.example/narad/remote/vault"
	"narad.example/narad/schema"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// Why a node does not start.
var (
	errNoSecret   = errors.New("NARAD_CLUSTER_SECRET: must be set on a node with cluster.peers")
	errRemotes    = errors.New("the metadata holds a remote, which needs security.enabled and NARAD_CLUSTER_SECRET")
	errNoMetadata = errors.New("the folder holds topics and no metadata, and a new cluster would delete them")
)

// maxPassword is what bcrypt takes.
const maxPassword = 72

// prepare checks what can be checked before anything is touched: secrets, the outbound lists, TLS files.
func (n *Node) prepare(context.Context) error {
	keys, err := vault.NewKeys(n.o.Secrets.ClusterSecret, n.o.Secrets.PreviousSecret)
	if err != nil {
		return err
	}
	if len(n.cfg.Cluster.Peers) > 0 && n.o.Secrets.ClusterSecret == "" {
		return errNoSecret
	}
	if len(n.o.Secrets.AdminPassword) > maxPassword {
		return fmt.Errorf("NARAD_ADMIN_PASSWORD: must be at most %d bytes", maxPassword)
	}
	r := n.cfg.Remotes
	guard, err := outbound.NewGuard(r.AllowedPorts, r.AllowedHosts, r.AllowAddresses)
	if err != nil {
		return fmt.Errorf("settings remotes.*: %w", err)
	}
	n.remote.keys, n.remote.guard = keys, guard
	if h := n.cfg.HTTP; h.TLSCertFile != "" {
		if n.certs, err = newCertificates(h.TLSCertFile, h.TLSKeyFile); err != nil {
			return err
		}
	}
	return nil
}

// openFolder makes the data folder and takes its lock: two processes never write to one folder.
func (n *Node) openFolder(context.Context) error {
	dir := n.cfg.Storage.DataDir
	if err := n.fs.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("setting storage.data_dir: %w", err)
	}
	lock, err := vfs.LockDir(n.fs, dir)
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("setting storage.data_dir: %s is held by another process: %w", dir, err)
	}
	if err != nil {
		return fmt.Errorf("setting storage.data_dir: %w", err)
	}
	n.lock = lock
	return n.checkMetadata()
}

// checkMetadata refuses a single node whose data folder holds topics and no metadata: it would begin as a new cluster, and
// delete the topics, which nobody there knows.
func (n *Node) checkMetadata() error {
	if len(n.cfg.Cluster.Peers) > 0 {
		return nil
	}
	if info, err := os.Stat(filepath.Join(n.raftDir(), "raft.db")); err == nil && info.Size() > 0 {
		return nil
	}
	topics, err := n.fs.ReadDir(n.topicsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("setting storage.data_dir: %w", err)
	}
	if len(topics) > 0 {
		return fmt.Errorf("setting storage.data_dir: %w: bring %s back, or name another folder", errNoMetadata, filepath.Join(n.raftDir(), "raft.db"))
	}
	return nil
}

func (n *Node) openPartitions(context.Context) error {
	codec := partition.NewCodec()
	if n.cfg.Storage.Codec == config.CodecZstd {
		codec = partition.NewZstd(n.cfg.Storage.CompressionLevel)
	}
	n.store = partition.NewStore(partition.StoreOptions{
		FS: n.fs, Dir: n.topicsDir(), SegmentBytes: n.cfg.Storage.SegmentBytes, Now: n.o.Now, Codec: codec,
		OnTorn: func(path string, at, bytes int64) {
			n.log.Warn("a partition ended in a torn write that nobody was answered for; it was cut and a copy kept beside it",
				slog.String("file", path), slog.Int64("offset", at), slog.Int64("bytes", bytes))
		},
		OnSync: func(topicID string, p int, d time.Duration) {
			if t, ok := n.meta.TopicByID(topicID); ok {
				n.metrics.Broker.FsyncSeconds.WithLabelValues(t.Name, strconv.Itoa(p)).Observe(d.Seconds())
			}
		},
	})
	n.owned = &owned{nodeID: n.id, state: n.meta.State, store: n.store}
	n.queues = queue.NewManager(queue.Options{
		CommitInterval: time.Duration(n.cfg.Storage.ConsumerOffsetCommitIntervalMS) * time.Millisecond,
		Topics:         topicsOf{n.meta.State, n.owned}, Store: n.store, FS: n.fs, Logger: n.log,
		Metrics: queueObserver{&n.metrics.Broker},
	})
	n.openMoves()
	n.loops.run("consumer state", n.queues.Run)
	n.loops.run("retention", n.retain)
	if idle := time.Duration(n.cfg.Storage.IdleLogEvictionMS) * time.Millisecond; idle > 0 {
		n.loops.run("idle logs", func(ctx context.Context) error { return n.rest(ctx, idle) })
	}
	return nil
}

// openRemotes builds the outbound plane: credential cache, senders.
func (n *Node) openRemotes(context.Context) error {
	if len(n.meta.Remotes()) > 0 && (!n.cfg.Security.Enabled || n.remote.keys.Usable() != nil) { // CRD-14
		return errRemotes
	}
	n.remote.health = newRemoteHealth(n.wall)
	n.remote.vault = vault.New(vault.Options{
		State: n.meta.State, Keys: n.remote.keys, Guard: n.remote.guard, Dial: n.net.Dial, Now: n.o.Now,
		Secure: func() bool { return n.cfg.Security.Enabled && !n.cfg.Security.AllowLegacyClusterAuth }, Logger: n.log, Observer: vaultObserver{&n.metrics.Remote, n.remote.health},
	})
	n.base.run("credentials", n.remote.vault.Run)
	if c := n.cfg.Cluster; len(c.Peers) > 0 && c.TLSCertFile == "" {
		n.loops.run("plaintext watch", n.watchPlaintext)
	}
	if len(n.cfg.Remotes.AllowedHosts) > 0 {
		n.metrics.Remote.Allowlist.Set(1)
	}
	var source *rand.Rand
	if n.o.Seed != 0 {
		source = rand.New(rand.NewPCG(n.o.Seed, 0x5e4de4))
	}
	n.remote.senders = sender.New(sender.Options{
		Remotes: remotes{n.remote.vault}, Logger: n.log, Observer: senderObserver{&n.metrics.Remote, &n.metrics.Fanout, n.remote.health}, Rand: source,
		MaxHeld: n.cfg.Remotes.MaxHeldBytes, Now: n.o.Now,
	})
	return nil
}

// openFlow builds the path of a record: ingress, dispatcher, cursors.
func (n *Node) openFlow(context.Context) error {
	n.owners = &router{n: n, life: newLife()}
	n.schemas = schema.NewValidators()
	in, err := ingress.Open(ingress.Options{
		FS: n.fs, Dir: filepath.Join(n.cfg.Storage.DataDir, "ingress"), SegmentBytes: n.cfg.Storage.SegmentBytes, Now: n.o.Now,
		Preallocate: n.cfg.Storage.IngressWALPrealloc, State: n.meta.State, Commit: n.owners, Gone: n, Reroute: n.owners, Logger: n.log,
		Validate: n.validate, Observer: ingressObserver{&n.metrics.Broker},
	})
	if err != nil {
		return fmt.Errorf("opening the ingress WAL: %w", err)
	}
	n.ingress = in
	n.pump.run("dispatcher", in.Run)
	n.loops.run("decommission", n.watchDecommission)
	f := n.cfg.Fanout
	n.runner = fanout.NewRunner(fanout.RunnerOptions{
		Meta: n.meta.State, NodeID: n.id, Store: n.store, FS: n.fs, Commit: &router{n: n}, OpenRemote: n.openLink, Confirm: n,
		Frontier: n.queues.Frontier, Now: n.o.Now, Logger: n.log, Observer: fanoutObserver{&n.metrics.Fanout},
		MaxRecords: f.MaxBatchRecords, MaxBytes: f.MaxBatchBytes, Linger: time.Duration(f.LingerMS) * time.Millisecond,
	})
	n.loops.run("cursors", n.runner.Run)
	n.loops.run("moves", n.moves.Run)
	n.loops.run("deleted topics", n.sweep)
	n.metrics.Collect(&cursorGauges{set: &n.metrics.Fanout, runner: n.runner, state: n.meta.State, now: n.wall})
	n.metrics.GaugeFunc("ingress_dispatch_backlog_records", "Accepted records that are not yet in their partition.",
		func() float64 { return float64(in.BacklogTotal()) })
	n.metrics.GaugeFunc("ingress_wal_failed", "1 while the ingress WAL takes no records until the next start.", func() float64 {
		if in.Failed() != nil {
			return 1
		}
		return 0
	})
	n.metrics.CounterFunc("remote_seals_total", "Passwords sealed on this node under its current key.", func() float64 {
		return float64(n.remote.keys.Seals(n.meta.Salt()))
	})
	n.metrics.CounterFunc("remote_reseal_opens_total", "Passwords opened on this node to be sealed under its current key.", func() float64 {
		return float64(n.remote.keys.Reopened())
	})
	n.metrics.Collect(&brokerGauges{n: n, moves: &cluster.Moves{Meta: n.meta, Dead: n.dead}})
	n.metrics.Collect(&credentialGauges{set: &n.metrics.Remote, state: n.meta.State, keys: n.remote.keys, now: n.wall})
	n.metrics.GaugeFunc("topics_total", "Topics and stubs.", func() float64 { return float64(len(n.meta.Topics())) })
	n.metrics.GaugeFunc("partitions_total", "Partitions of this node.", func() float64 {
		total := 0
		for _, t := range n.meta.Topics() {
			total += len(n.owned.mine(&t))
		}
		return float64(total)
	})
	return nil
}

// openAccess builds users and topic administration, and makes the root admin of a new cluster.
func (n *Node) openAccess(ctx context.Context) error {
	cost := 0
	if n.o.Fast {
		cost = bcrypt.MinCost
	}
	n.control = access.New(access.Options{State: n.meta.State, Disabled: !n.cfg.Security.Enabled, Cost: cost})
	n.users = access.NewUsers(n.control, n.meta)
	t := n.cfg.Topic
	keep := t.DefaultRetentionAgeMS
	if keep == 0 {
		keep = -1
	}
	n.topics = cluster.NewTopics(cluster.TopicsOptions{
		Meta: n.meta, NodeID: n.id, Partitions: partitionsOf{n}, Dead: n.dead, Schema: n.schemas.Parse,
		Defaults: cluster.Defaults{
			Partitions: t.DefaultPartitions, MaxPartitions: t.MaxPartitions, RetentionMS: keep,
			VisibilityTimeoutMS: t.DefaultVisibilityTimeoutMS, MaxInFlight: t.DefaultMaxInFlightPerPartition,
			MaxAckedAhead: t.DefaultMaxAckedAheadPerPartition,
		},
	})
	if !n.cfg.Security.Enabled {
		n.status.login()
		return nil
	}
	root := &access.Bootstrap{
		Control: n.control, Propose: n.meta, FS: n.fs, Logger: n.log,
		File: filepath.Join(n.cfg.Storage.DataDir, "admin-password"),
	}
	if len(n.cfg.Cluster.Peers) > 0 {
		n.loops.run("root admin", func(ctx context.Context) error { return n.ensureRoot(ctx, root) })
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	return n.ensureRoot(ctx, root)
}

// ensureRoot tries until the root admin exists or ctx ends: a cluster of several nodes may have no leader for a while.
func (n *Node) ensureRoot(ctx context.Context, root *access.Bootstrap) error {
	for {
		err := root.EnsureRoot(ctx, n.o.Secrets.AdminPassword)
		if err == nil {
			n.status.login()
			return nil
		}
		if ctx.Err() != nil || wire.KindOf(err) != wire.Unavailable { // another try helps only where a leader is missing
			return fmt.Errorf("making the root admin: %w", err)
		}
		n.log.Debug("the root admin is not there yet", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
