package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/access"
	"narad.example/narad/api"
	"narad.example/narad/cluster"
	"narad.example/narad/config"
	"narad.example/narad/fanout"
	"narad.example/narad/ingress"
	"narad.example/narad/meta"
	"narad.example/narad/metrics"
	"narad.example/narad/move"
	"narad.example/narad/partition"
	"narad.example/narad/peer"
	"narad.example/narad/queue"
	"narad.example/narad/remote/link"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/sender"
	"narad.example/narad/remote/vault"
	"narad.example/narad/schema"
	"narad.example/narad/vfs"
)

// Node is a running node.
type Node struct {
	id      string
	cfg     config.Config
	o       Options
	net     Network
	fs      vfs.FS
	log     *slog.Logger
	metrics *metrics.Set

	lock  io.Closer
	meta  *meta.Store
	plane plane
	owned *owned

	draining sync.Mutex // nothing reads this node's member record and opens or closes the ingress by it at once with another

	commits commitLines
	flow
	remote remotePlane
	surface
	certs  *certificates // nil without http.tls_cert_file
	front  *front
	status status
	groups
}

// flow is the way of a record through the node.
type flow struct {
	store   *partition.Store
	queues  *queue.Manager
	moves   *move.Moves
	ingress *ingress.Ingress
	owners  *router
	runner  *fanout.Runner
	schemas *schema.Validators
}

// surface is what answers requests.
type surface struct {
	topics  *cluster.Topics
	control *access.Control
	users   *access.Users
	members *cluster.Membership
	api     *api.Server
}

// groups are the node's loops, in the order in which they end.
type groups struct {
	loops *group // everything else
	pump  *group // the dispatcher
	base  *group // the credential cache, which outlives the cursors that send with it
}

// plane is what the node says to its peers; empty on a node without peers.
type plane struct {
	client *peer.Client
	server *peer.Server
	beats  *cluster.Heartbeats

	controller *cluster.Controller
}

// remotePlane is everything that sends to other clusters.
type remotePlane struct {
	keys    *vault.Keys
	guard   *outbound.Guard
	vault   *vault.Vault
	senders *sender.Senders
	links   *link.Service
	health  *remoteHealth
}

// Start builds and starts a node. It returns once the API answers; a failure closes what was opened and names the setting or
// the folder that is wrong.
func Start(ctx context.Context, o Options) (*Node, error) {
	log := o.Logger.With(slog.String("node", o.Config.Cluster.NodeID))
	n := &Node{
		id: o.Config.Cluster.NodeID, cfg: o.Config, o: o, net: o.Network, fs: o.FS, log: log, metrics: metricsOf(&o),
		front: newFront(), groups: groups{loops: newGroup(log), pump: newGroup(log), base: newGroup(log)},
	}
	for _, step := range []func(context.Context) error{
		n.prepare, n.openFolder, n.openMetadata, n.openPartitions, n.openRemotes, n.openFlow, n.openAccess, n.openLinks, n.serve,
	} {
		if err := step(ctx); err != nil {
			n.status.stop()
			_ = n.end() // what failed first is what the operator needs to read
			return nil, err
		}
	}
	n.log.Info("node started", slog.String("api", n.APIAddr()))
	return n, nil
}

func metricsOf(o *Options) *metrics.Set {
	if o.Fast {
		return metrics.Simulated()
	}
	return metrics.New()
}

// Stop ends the node gracefully: no new produce, the ingress drained into the partitions as far as the grace allows, the lead handed over,
// cursors and positions flushed. Records that were answered 202 and not yet dispatched stay in the ingress WAL.
func (n *Node) Stop(ctx context.Context) error {
	n.status.stop()
	n.log.Info("node stops")
	grace, cancel := context.WithTimeout(ctx, time.Duration(n.cfg.HTTP.ShutdownGrace))
	defer cancel()
	drained := n.ingress.Drain(grace)
	if drained != nil {
		n.log.Warn("stopped before every accepted record was dispatched; they wait in the ingress WAL",
			slog.Int64("records", n.ingress.BacklogTotal()))
	}
	n.front.shutdown(grace)
	n.handOver(grace)
	err := n.end()
	n.log.Info("node stopped")
	return err
}

// Kill ends the node at once, as the death of its process would: nothing is drained or flushed on purpose. Whoever calls it
// freezes the file system and cuts the network first.
func (n *Node) Kill() {
	n.status.stop()
	_ = n.end()
}

// APIAddr is where the API listens, as host:port.
func (n *Node) APIAddr() string {
	if n.front.addr == nil {
		return n.cfg.HTTP.Addr
	}
	return n.front.addr.String()
}

// Failure is the first error of a loop that ended by itself, nil while all run.
func (n *Node) Failure() error {
	if n.meta != nil && n.meta.Failed() != nil {
		return n.meta.Failed()
	}
	for _, g := range []*group{n.pump, n.base, n.loops} {
		if err := g.failure(); err != nil {
			return err
		}
	}
	return nil
}

// end closes whatever is open, from the outside in. It is the way out of a failed start too, so every room may be absent.
func (n *Node) end() error {
	n.front.end()
	if n.plane.server != nil {
		n.plane.server.Close() // ends its loop
	}
	n.loops.stop()
	n.pump.stop()
	n.base.stop()
	var errs []error
	closes := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", what, err))
		}
	}
	if n.ingress != nil {
		closes("the ingress", n.ingress.Close())
	}
	if n.queues != nil {
		closes("the consumer state", n.queues.Close())
	}
	if n.store != nil {
		closes("the partitions", n.store.Close())
	}
	if n.meta != nil {
		closes("the metadata", n.meta.Close())
	}
	if n.plane.client != nil {
		n.plane.client.Close()
	}
	if n.lock != nil {
		closes("the data folder", n.lock.Close())
	}
	return errors.Join(errs...)
}
