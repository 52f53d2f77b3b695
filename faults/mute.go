package faults

import (
	"context"
	"fmt"
	"math/rand/v2"

	"narad.example/harness/cluster"
)

// Muted is the kind of a fault by which a node never answers those that dial it.
const Muted = "mute"

// Mute has somebody else stand at a node's ports, who says nothing, garbage, bytes without end, or relays what the node says.
type Mute struct {
	Label   string
	Node    string
	Carries string
	Says    string

	muted  cluster.Muted
	showed bool
	own    int // connections of the fault itself
}

// Name is the label, or what the fault is.
func (m *Mute) Name() string { return label(m.Label, Muted+" on "+m.Node) }

func (m *Mute) about() (kind, on string) { return Muted, m.Node }

// Applies checks that the rig can do it and that the node runs.
func (m *Mute) Applies(rig cluster.Rig) error {
	if _, ok := rig.(cluster.Mutable); !ok {
		return fmt.Errorf("%w: the nodes of this rig cannot be muted", cluster.ErrUnsupported)
	}
	n, err := rig.Node(m.Node)
	if err == nil && !n.Running() {
		err = fmt.Errorf("%s does not run", m.Node)
	}
	return err
}

// ways are the ports that it stands at.
func (m *Mute) ways() []string {
	if m.Carries == cluster.CarriesAll {
		return []string{cluster.CarriesRaft, cluster.CarriesRPC}
	}
	return []string{m.Carries}
}

// probe dials each port as another node would.
func (m *Mute) probe(ctx context.Context, rig cluster.Rig) error {
	parted, err := partedOf(rig)
	if err != nil {
		return err
	}
	n, err := rig.Node(m.Node)
	if err != nil {
		return err
	}
	for _, other := range rig.Nodes(n.Side()) {
		if other.Name() == m.Node {
			continue
		}
		for _, carries := range m.ways() {
			c, err := reach(ctx, parted, path{other.Name(), m.Node, carries})
			if err != nil {
				return err
			}
			sleep(ctx, within/10) // until it is taken
			_ = c.Close()
		}
		return nil
	}
	return fmt.Errorf("%s is alone", m.Node)
}

// Inject begins, and shows that a connection of another node meets somebody else.
func (m *Mute) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	mutable, ok := rig.(cluster.Mutable)
	if !ok {
		return false, nil, cluster.ErrUnsupported
	}
	var err error
	if m.muted, err = mutable.Mute(ctx, m.Node, m.Carries, m.Says); err != nil {
		m.muted = nil
		return false, nil, err
	}
	if err = m.probe(ctx, rig); err != nil {
		return false, nil, err
	}
	m.own = len(m.ways())
	m.showed = m.muted.Met() >= m.own
	return false, Evidence{"says": m.Says, "carries": m.Carries}, nil // the nodes must meet it too, which shows at the end
}

// Heal gives the node its ports back, shows that connections go there again, and counts what was met: it landed when the nodes met it.
func (m *Mute) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	if m.muted == nil {
		return false, nil, nil
	}
	if err := m.muted.Mend(ctx); err != nil {
		return false, nil, err
	}
	met := m.muted.Met()
	if err := m.probe(ctx, rig); err != nil {
		return false, nil, fmt.Errorf("%s is not reached: %w", m.Node, err)
	}
	if again := m.muted.Met(); again != met {
		return false, nil, fmt.Errorf("%w: %s is still muted", cluster.ErrTrouble, m.Node)
	}
	return m.showed && met > m.own, Evidence{"connections_met": met, "of_the_nodes": met - m.own}, nil
}
