package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"narad.example/harness/cluster"
	"narad.example/scenarios"
)

// errNobody is the cause when nobody is what an alias names.
var errNobody = errors.New("nobody is that now")

// whomLimit bounds the search for the node that an alias names: an election takes a few seconds.
const whomLimit = 20 * time.Second

// whom is the node that a fault means: name itself, or who is leader or owner at this moment. A cluster that elects is waited for.
func (p *play) whom(ctx context.Context, name string) (string, error) {
	a, isAlias := scenarios.Alias(name)
	if !isAlias {
		return name, nil
	}
	ctx, cancel := context.WithTimeout(ctx, whomLimit)
	defer cancel()
	for {
		found := p.leaders(ctx, a.Side)
		if a.Topic != "" {
			found = p.ownersOf(ctx, a)
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return "", fmt.Errorf("%s: %w (%d claim it)", name, errNobody, len(found))
		}
	}
}

// leaders are the nodes of a side that say that they lead: none while they elect, two while one that was parted has not noticed.
func (p *play) leaders(ctx context.Context, side string) (names []string) {
	for _, n := range p.rig.Nodes(side) {
		if !n.Running() {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		leads := cluster.Leads(limited, n)
		cancel()
		if leads {
			names = append(names, n.Name())
		}
	}
	return names
}

// ownersOf asks the nodes of a side in turn who owns a partition.
func (p *play) ownersOf(ctx context.Context, a scenarios.Aliased) []string {
	for _, n := range p.rig.Nodes(a.Side) {
		if !n.Running() {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		detail, err := n.Client().Topic(limited, a.Topic, nil)
		cancel()
		if err != nil {
			continue
		}
		for _, st := range detail.PartitionStats {
			if st.Index == a.Partition && st.OwnerNode != "" {
				return []string{st.OwnerNode}
			}
		}
	}
	return nil
}

// parties are the nodes that a cut means: an alias is looked for now, a side is all its nodes but those that it is parted from.
func (p *play) parties(ctx context.Context, f scenarios.Fault) (cluster.Cut, error) {
	c := cluster.Cut{OneWay: f.OneWay, Silent: f.Silent, Carries: f.Carries}
	first, err := p.whom(ctx, f.Between[0])
	if err != nil {
		return c, err
	}
	c.From = []string{first}
	n, err := p.rig.Node(first)
	if err != nil {
		return c, err
	}
	second := f.Between[1]
	switch {
	case second == n.Side():
		for _, other := range p.rig.Nodes(n.Side()) {
			if other.Name() != first {
				c.To = append(c.To, other.Name())
			}
		}
	case second == cluster.Target:
		c.To = []string{cluster.Target}
	default:
		if second, err = p.whom(ctx, second); err != nil {
			return c, err
		}
		c.To = []string{second}
	}
	if slices.Contains(c.To, first) {
		return c, fmt.Errorf("%s: %w: both parties are %s", f.Name(), cluster.ErrTrouble, first)
	}
	return c, nil
}
