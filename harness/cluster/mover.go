package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"

	members "narad.example/narad/cluster"
	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

// mover begins moves as a member of the cluster would, since no route of the API does: it holds the cluster secret, and puts the entry to whichever
// node leads, over the node RPC.
type mover struct {
	secret string
	// at lists where the nodes of the side have their node RPC, past every door, by those that can be asked now.
	at func(ctx context.Context) []string
}

// move proposes to move a partition from the owner that n tells to another member. Errors are the leader's *wire.Problem, or of ErrTrouble.
func (v *mover) move(ctx context.Context, n Node, topic string, partition int, to string) error {
	d, err := n.Client().Topic(ctx, topic, &partition)
	if err != nil {
		return err
	}
	if len(d.PartitionStats) != 1 {
		return wire.Refuse(wire.NotFound, "no such partition")
	}
	entry, err := meta.Encode(meta.StartMove{
		TopicID: d.ID, Partition: partition, From: d.PartitionStats[0].OwnerNode, To: to, MoveID: meta.NewID(),
	})
	if err != nil {
		return fmt.Errorf("%w: move: %w", ErrTrouble, err)
	}
	c := peer.NewClient(peer.ClientOptions{Secret: v.secret, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}})
	defer c.Close()
	forward := members.NewForwarder(c)
	for _, address := range v.at(ctx) {
		if _, err = forward.ForwardPropose(ctx, address, entry); !errors.Is(err, meta.ErrNotLeader) {
			return err
		}
	}
	return wire.Refuse(wire.Unavailable, "no node of the cluster leads")
}
