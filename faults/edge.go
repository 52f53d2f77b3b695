package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// TLS shows another face at the target's TLS edge: a certificate that is not good, an alert, silence.
type TLS struct {
	Label string
	Face  string // one of fakes.FaceNames

	before fakes.FaceCount
	probes int // connections of the fault itself
}

// Name is the label, or what the fault is.
func (f *TLS) Name() string { return label(f.Label, "tls "+f.Face+" on "+theLink) }

func (f *TLS) about() (kind, on string) { return "tls", theLink }

// Applies checks that the rig's edge has faces.
func (f *TLS) Applies(rig cluster.Rig) error {
	_, err := facedOf(rig)
	return err
}

func facedOf(rig cluster.Rig) (cluster.Faced, error) {
	faced, ok := rig.(cluster.Faced)
	if !ok {
		return nil, fmt.Errorf("%w: the edge of this rig has one face", cluster.ErrUnsupported)
	}
	return faced, nil
}

// Inject shows the face, which ends every connection that is there, and probes: a handshake of the harness, which knows the rig's
// authority and name, must fail.
func (f *TLS) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	faced, err := facedOf(rig)
	if err != nil {
		return false, nil, err
	}
	met, err := faced.Met(ctx)
	if err != nil {
		return false, nil, err
	}
	f.before = met[f.Face]
	if err = faced.Show(ctx, f.Face); err != nil {
		return false, nil, err
	}
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, refused := rig.Link().Probe(soon, 1)
	if refused != nil {
		f.probes = 1 // a stall aside, it met the edge
	}
	return false, Evidence{"face": f.Face, "probe": errText(refused)}, nil // the source must meet it too, which shows at the end
}

// Heal counts what the edge met under the face, shows the good one again and probes. The fault landed when the harness' own handshake failed and
// the source tried one at least.
func (f *TLS) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	faced, err := facedOf(rig)
	if err != nil {
		return false, nil, err
	}
	met, err := faced.Met(ctx)
	if err != nil {
		return false, nil, err
	}
	accepted, served := met[f.Face].Accepted-f.before.Accepted, met[f.Face].Served-f.before.Served
	e := Evidence{"handshakes_begun": accepted, "requests_after_them": served}
	landed := f.probes > 0 && accepted > f.probes
	if err = faced.Show(ctx, fakes.FaceGood); err != nil {
		return landed, e, err
	}
	return landed, e, open(ctx, rig.Link())
}

// DNS changes what the source's lookups of the target's name are answered.
type DNS struct {
	Label   string
	Answers []string

	before cluster.Lookups
}

// Name is the label, or what the fault is.
func (f *DNS) Name() string { return label(f.Label, "dns on "+theLink) }

func (f *DNS) about() (kind, on string) { return "dns", theLink }

// Applies checks that the rig's names can change.
func (f *DNS) Applies(rig cluster.Rig) error {
	if _, ok := rig.(cluster.Named); !ok {
		return fmt.Errorf("%w: the names of this rig cannot change", cluster.ErrUnsupported)
	}
	return nil
}

// Inject changes the answers. Connections that are there stay, as they do when a name changes.
func (f *DNS) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (landed bool, e Evidence, err error) {
	named, ok := rig.(cluster.Named)
	if !ok {
		return false, nil, cluster.ErrUnsupported
	}
	if f.before, err = named.Asked(ctx); err != nil {
		return false, nil, err
	}
	return false, Evidence{"answers": f.Answers}, named.Answer(ctx, f.Answers) // it landed once the source has asked
}

// EvidenceDialled is the evidence of a DNS fault that counts connections to the addresses that it answered: a judge looks at it.
const EvidenceDialled = "connections_to_them"

// Heal says what became of the answers, and gives the true one again.
func (f *DNS) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	named, ok := rig.(cluster.Named)
	if !ok {
		return false, nil, cluster.ErrUnsupported
	}
	after, err := named.Asked(ctx)
	if err = errors.Join(err, named.Answer(ctx, nil)); err != nil {
		return false, nil, err
	}
	asked := after.Asked - f.before.Asked
	e := Evidence{"lookups": asked, "refused_by_the_guard": after.Refused - f.before.Refused, EvidenceDialled: after.Dialled - f.before.Dialled}
	return asked > 0, e, open(ctx, rig.Link())
}

// Config restarts a node with more laid over its configuration, and once more without it.
type Config struct {
	Label string
	Node  string
	Set   map[string]any
	Dying Dying // of each of the two stops
}

// Name is the label, or what the fault is.
func (c *Config) Name() string { return label(c.Label, "config of "+c.Node) }

func (c *Config) about() (kind, on string) { return "config", c.Node }

// Applies checks that the node runs and can be given another configuration.
func (c *Config) Applies(rig cluster.Rig) error {
	n, err := rig.Node(c.Node)
	if err != nil {
		return err
	}
	if _, ok := n.(cluster.Reconfigurable); !ok {
		return fmt.Errorf("%w: the configuration of %s cannot change", cluster.ErrUnsupported, c.Node)
	}
	if !n.Running() {
		return fmt.Errorf("%s does not run", c.Node)
	}
	return nil
}

// Inject restarts the node with the other configuration; it landed when the node answers again after it was gone.
func (c *Config) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	return c.restart(ctx, rig, c.Set)
}

// Heal restarts it with its own.
func (c *Config) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	_, e, err := c.restart(ctx, rig, nil)
	return false, Evidence{"healed_in_ms": e["took_ms"]}, err
}

func (c *Config) restart(ctx context.Context, rig cluster.Rig, over map[string]any) (bool, Evidence, error) {
	n, err := rig.Node(c.Node)
	if err != nil {
		return false, nil, err
	}
	node, ok := n.(cluster.Reconfigurable)
	if !ok {
		return false, nil, cluster.ErrUnsupported
	}
	begin := time.Now()
	if n.Running() {
		ended := c.Dying.before(ctx, true)
		if err = n.Stop(ctx); err != nil {
			return false, nil, err
		}
		ended()
	}
	gone := answers(ctx, n)
	if err = node.Reconfigure(ctx, over); err != nil {
		return false, nil, err
	}
	if err = n.Start(ctx); err != nil {
		return false, nil, err
	}
	err = answers(ctx, n)
	return gone != nil && err == nil, Evidence{"request_between": errText(gone), "took_ms": ms(time.Since(begin))}, err
}
