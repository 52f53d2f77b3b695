package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"narad.example/fakes"
	"narad.example/harness/ledger"
	"narad.example/harness/spawn"
)

// closeLimit bounds the clean-up after a start that failed.
const closeLimit = 30 * time.Second

type processBackend struct{}

// Processes is the backend that runs the project's binaries on loopback.
func Processes() Backend { return processBackend{} }

func (processBackend) Name() string { return "process" }

func (processBackend) Available(context.Context) error { return nil }

func (processBackend) Sweep(context.Context) error { return sweepJournals() }

// processRig is a rig of processes; tap, fake and toxiproxy live in the harness itself.
type processRig struct {
	troubles
	*meshed // nil as mesh is
	remote  Remote
	secrets secrets
	nodes   map[string][]Node
	ports   ports
	web     *web
	spawn   *spawn.Spawner
	journal *journal
	proxy   *toxiproxyServer
	link    *toxiproxyLink
	tap     *fakes.Tap
	fake    *fakes.Target
	mesh    *mesh // between nodes, nil where there are no two or a dialler cannot be told

	building sync.Mutex // guards own, which grows while nodes dial each other already
	own      []*child
}

func (processBackend) Start(ctx context.Context, spec Spec) (Rig, error) {
	r := &processRig{nodes: map[string][]Node{}, secrets: newSecrets(), spawn: spawn.New()}
	if err := r.build(ctx, spec); err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, errors.Join(err, r.Close(ending))
	}
	return r, nil
}

// build starts the parts from the far end to the near one.
func (r *processRig) build(ctx context.Context, spec Spec) error {
	var err error
	if r.journal, err = newJournal(); err != nil {
		return err
	}
	if spec.Epoch.IsZero() {
		spec.Epoch = time.Now()
	}
	id, err := NewEdge("127.0.0.1", "localhost", "link")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(id.CAPEM))
	r.web = newWeb(roots)
	data, err := r.journal.folder()
	if err != nil {
		return err
	}
	if spec.Dir == "" {
		spec.Dir = data
	}
	if err = r.openMesh(spec); err != nil {
		return err
	}
	edge, err := r.farEnd(ctx, spec, data, id)
	if err != nil {
		return err
	}
	port, err := r.ports.pair()
	if err != nil {
		return err
	}
	if err = r.startLink(ctx, loopback(port), edge, roots); err != nil {
		return err
	}
	if port, err = r.wayOut(spec, port); err != nil {
		return err
	}
	r.remote = Remote{URL: "https://" + loopback(port), CAPEM: id.CAPEM, OtherCAPEM: id.OtherCAPEM}
	if r.fake != nil {
		r.remote.User, r.remote.Password = fakeUser, r.secrets.fake
	}
	return r.side(ctx, Source, spec, data, remotesConfig(port, true))
}

// farEnd starts the fake, or the target's nodes and the tap in front of them, and returns where the link leads to.
func (r *processRig) farEnd(ctx context.Context, spec Spec, data string, id Edge) (string, error) {
	var err error
	if spec.Fake != nil {
		r.fake, err = fakes.StartTarget(fakes.TargetConfig{
			Name: "target-1", Listen: loopback(0), Elsewhere: loopback(0), Cert: id.Cert, Faces: id.Faces, Epoch: spec.Epoch, Script: *spec.Fake,
			Users: map[string]string{fakeUser: r.secrets.fake},
		})
		if err != nil {
			return "", err
		}
		r.nodes[Target] = []Node{&fakeNode{web: r.web, base: func(context.Context) (string, error) { return "https://" + r.fake.Addr(), nil }, password: r.secrets.fake}}
		return r.fake.Addr(), nil
	}
	if err = r.side(ctx, Target, spec, data, nil); err != nil {
		return "", err
	}
	var upstreams []string
	for _, n := range r.nodes[Target] {
		upstreams = append(upstreams, n.(*processNode).base)
	}
	r.tap, err = fakes.StartTap(fakes.TapConfig{Name: "edge", Listen: loopback(0), Upstreams: upstreams, Cert: id.Cert, Faces: id.Faces, Epoch: spec.Epoch})
	if err != nil {
		return "", err
	}
	return r.tap.Addr(), nil
}

func (r *processRig) startLink(ctx context.Context, listen, edge string, roots *x509.CertPool) error {
	var err error
	if r.proxy, err = startToxiproxy(loopback(0)); err != nil {
		return fmt.Errorf("%w: %w", ErrTrouble, err)
	}
	r.link = &toxiproxyLink{
		api: func(context.Context) (string, error) { return r.proxy.addr, nil },
		prober: &Prober{Host: "127.0.0.1", Roots: roots, Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", listen)
		}},
	}
	return r.link.create(ctx, listen, edge)
}

// side starts all nodes of a side, then waits for all: a cluster of several is ready only together.
func (r *processRig) side(ctx context.Context, side string, spec Spec, data string, extra map[string]any) error {
	want := spec.Source
	if side == Target {
		want = spec.Target
	}
	first := max(want.Nodes, 1)
	places, err := r.places(side, first+want.Spares, data)
	if err != nil {
		return err
	}
	proof := filepath.Join(data, side+"-raft")
	if first > 1 {
		files, err := newRaftProof("127.0.0.1")
		if err = errors.Join(err, keepProof(proof, files)); err != nil {
			return err
		}
	}
	var started []*processNode
	for i := range places {
		n, err := r.node(side, layout{places: places, first: first, i: i, proof: proof}, spec, extra, want)
		if err != nil {
			return err
		}
		r.nodes[side] = append(r.nodes[side], n)
		r.building.Lock()
		r.own = append(r.own, n.child)
		r.building.Unlock()
		if i >= first {
			n.spare.Store(true)
			continue
		}
		started = append(started, n)
		if err = n.child.launch(); err != nil {
			return fmt.Errorf("start of %s: %w", n.Name(), err)
		}
	}
	for _, n := range started {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// places gives each node of a side its ports, and its doors where it has peers.
func (r *processRig) places(side string, count int, data string) ([]place, error) {
	var places []place
	for i := range count {
		api, err := r.ports.pair()
		if err != nil {
			return nil, err
		}
		raft, err := r.ports.pair()
		if err != nil {
			return nil, err
		}
		name := side + "-" + strconv.Itoa(i+1)
		p := place{name: name, api: loopback(api), raft: loopback(raft), raftSeen: loopback(raft), rpc: loopback(raft + 1), data: filepath.Join(data, name)}
		if count > 1 {
			if err = r.doors(&p, raft); err != nil {
				return nil, err
			}
		}
		places = append(places, p)
	}
	return places, nil
}

func (r *processRig) node(side string, at layout, spec Spec, extra map[string]any, want Side) (*processNode, error) {
	p := at.places[at.i]
	config, err := nodeConfig(at, extra, want.Config)
	if err != nil {
		return nil, err
	}
	if err = os.MkdirAll(p.data, 0o755); err != nil {
		return nil, fmt.Errorf("%w: data folder: %w", ErrTrouble, err)
	}
	file := p.data + ".json"
	if err = os.WriteFile(file, config, 0o600); err != nil {
		return nil, fmt.Errorf("%w: config of %s: %w", ErrTrouble, p.name, err)
	}
	env := []string{"TMPDIR=" + os.TempDir()}
	for name, v := range r.secrets.env(side) {
		env = append(env, name+"="+v)
	}
	older := slices.Contains(want.Older, at.i+1)
	program := spec.Binaries.Narad
	if older {
		if program, err = spec.Binaries.olderBuild(); err != nil {
			return nil, err
		}
		env = append(env, olderEnv+"=1")
	}
	n := &processNode{
		side: side, narad: spec.Binaries.Narad, rpc: p.rpc, mover: &mover{secret: r.secrets.cluster[side], at: r.rpcs(side)},
		base: "http://" + p.api, web: r.web, password: r.secrets.admin, file: file,
		config: func(over map[string]any) ([]byte, error) { return nodeConfig(at, extra, Merge(want.Config, over)) },
		child: &child{
			name: p.name, spawn: r.spawn, journal: r.journal, trouble: &r.troubles, env: env,
			argv: []string{program, "serve", "--config", file}, log: filepath.Join(spec.Dir, "nodes", p.name+".log"),
		},
	}
	n.older.Store(older)
	return n, nil
}

func (r *processRig) Nodes(side string) []Node { return joined(r.nodes[side]) }

// joined are the nodes that are no spares, or not any more.
func joined(nodes []Node) []Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool {
		s, ok := n.(interface{ waits() bool })
		return ok && s.waits()
	})
}

func (r *processRig) Node(name string) (Node, error) { return find(r.nodes, name) }

func find(nodes map[string][]Node, name string) (Node, error) {
	for _, side := range []string{Source, Target} {
		for _, n := range nodes[side] {
			if n.Name() == name {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("no node is named %q", name)
}

func (r *processRig) Link() Link { return r.link }

func (r *processRig) Remote() Remote { return r.remote }

func (r *processRig) Admin() (user, password string) { return adminUser, r.secrets.admin }

func (r *processRig) Secrets() []string { return r.secrets.list() }

func (r *processRig) Wire(ctx context.Context) ([]ledger.WireRequest, error) {
	if r.fake != nil {
		return r.fake.Requests(ctx)
	}
	return r.tap.Requests(ctx)
}

// Steps reports the use of the fake's script steps.
func (r *processRig) Steps(context.Context) ([]ledger.Step, error) {
	if r.fake == nil {
		return nil, nil
	}
	return r.fake.Steps(), nil
}

// Show and Met are Faced.
func (r *processRig) Show(_ context.Context, face string) error {
	if r.fake != nil {
		return r.fake.Show(face)
	}
	return r.tap.Show(face)
}

func (r *processRig) Met(context.Context) (map[string]fakes.FaceCount, error) {
	if r.fake != nil {
		return r.fake.Met(), nil
	}
	return r.tap.Met(), nil
}

// Close kills what still runs, from the near end to the far one, and removes data and journal. It also works on a rig that
// was built halfway.
func (r *processRig) Close(context.Context) error {
	for _, c := range r.own {
		c.kill()
	}
	r.spawn.Close()
	if r.mesh != nil {
		r.mesh.close()
	}
	errs := r.ports.close()
	if r.proxy != nil {
		errs = errors.Join(errs, r.proxy.close())
	}
	if r.link != nil {
		r.link.close()
	}
	if r.tap != nil {
		errs = errors.Join(errs, r.tap.Close())
	}
	if r.fake != nil {
		errs = errors.Join(errs, r.fake.Close())
	}
	if r.web != nil {
		r.web.close()
	}
	if r.journal != nil {
		errs = errors.Join(errs, r.journal.close())
	}
	return errs
}
