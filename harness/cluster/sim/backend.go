package sim

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"narad.example/fakes"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/config"
	"narad.example/narad/vfs"
)

// Ports of the simulation's link and edge.
const (
	linkHost = "link"
	linkPort = "20001"
	edgePort = "8443"
)

// Backend starts rigs in this process. Start must be called inside a bubble.
type Backend struct {
	Random func(name string) []byte // 32 bytes for a secret of that name
}

// Name is sim.
func (*Backend) Name() string { return "sim" }

// Available is always nil.
func (*Backend) Available(context.Context) error { return nil }

// Sweep has nothing to remove: everything lives and dies with the process.
func (*Backend) Sweep(context.Context) error { return nil }

// rig is a pair of clusters in one process.
type rig struct {
	net     *Network
	link    *link
	nodes   []*simNode
	tap     *fakes.Tap
	fake    *fakes.Target
	remote  cluster.Remote
	admin   string
	secrets []string
	http    *http.Client
	raft    string
	harness *Host
}

// Start builds network, nodes, edge and link.
func (b *Backend) Start(ctx context.Context, spec cluster.Spec) (cluster.Rig, error) {
	raft, err := os.MkdirTemp("", "narad-sim-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	r := &rig{net: NewNetwork(), raft: raft, admin: b.secret("admin")}
	r.harness = r.net.Host("harness")
	r.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return r.harness.Dial(ctx, network, addr, nil)
		},
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true, // bytes cost nothing here, packing them does
	}}
	r.secrets = append(r.secrets, r.admin)
	if err := r.start(ctx, b, spec); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// secret is a password of 43 characters.
func (b *Backend) secret(name string) string { return encode(b.Random(name)) }

func (r *rig) start(ctx context.Context, b *Backend, spec cluster.Spec) error {
	if err := os.MkdirAll(filepath.Join(spec.Dir, ledger.NodesName), 0o755); err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	sides := []struct {
		name string
		side cluster.Side
	}{{cluster.Source, spec.Source}, {cluster.Target, spec.Target}}
	if spec.Fake != nil {
		sides = sides[:1]
	}
	for _, s := range sides {
		var started []*simNode
		for i := range max(1, s.side.Nodes) {
			n, err := r.newNode(b, spec, s.name, i, s.side)
			if err != nil {
				return err
			}
			n.older.Store(slices.Contains(s.side.Older, i+1))
			r.nodes, started = append(r.nodes, n), append(started, n)
		}
		for i := range s.side.Spares {
			n, err := r.newNode(b, spec, s.name, s.side.Nodes+i, s.side)
			if err != nil {
				return err
			}
			n.spare.Store(true)
			r.nodes = append(r.nodes, n)
		}
		if err := together(ctx, started); err != nil {
			return err
		}
	}
	return r.startEdge(ctx, b, spec)
}

// together starts the nodes of a side at once, since none is ready before the others are there, and waits until all are.
func together(ctx context.Context, nodes []*simNode) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			if errs[i] = n.Start(ctx); errs[i] == nil {
				errs[i] = n.awaitReady(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// newNode prepares node i of a side, counted from 0.
func (r *rig) newNode(b *Backend, spec cluster.Spec, side string, i int, s cluster.Side) (*simNode, error) {
	name := nodeName(side, i)
	cfg := map[string]any{
		"http":     map[string]any{"addr": ":" + apiPort},
		"cluster":  map[string]any{"node_id": name, "addr": "127.0.0.1:7943"},
		"storage":  map[string]any{"data_dir": "/" + name},
		"remotes":  map[string]any{"allowed_ports": []int{20001}, "api_hop_encrypted": true},
		"security": map[string]any{"enabled": true},
	}
	if s.Nodes > 1 {
		var peers []string
		for p := range s.Nodes {
			peers = append(peers, nodeName(side, p)+"@"+nodeName(side, p)+":7943")
		}
		of := map[string]any{"node_id": name, "addr": ":7943", "peers": peers}
		if i >= s.Nodes { // a spare knows the first members, and they do not know it
			var first []string
			for p := range s.Nodes {
				first = append(first, nodeName(side, p))
			}
			of["peers"], of["initial_members"] = append(peers, name+"@"+name+":7943"), first
		}
		cfg["cluster"] = of
		cfg["security"] = map[string]any{"enabled": true, "allow_plaintext_raft": true}
	}
	read := func(over map[string]any) (config.Config, error) {
		return configOf(filepath.Join(r.raft, name+".json"), cluster.Merge(cluster.Merge(cfg, s.Config), over))
	}
	c, err := read(nil)
	if err != nil {
		return nil, err
	}
	l, err := newLog(filepath.Join(spec.Dir, ledger.NodesName, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	secret := encodePadded(b.Random("cluster " + side))
	if i == 0 {
		r.secrets = append(r.secrets, secret)
	}
	return &simNode{
		name: name, side: side, host: r.net.Host(name), config: c, read: read, fs: vfs.NewMem(), log: l, http: r.http, password: r.admin,
		secrets: config.Secrets{AdminPassword: r.admin, ClusterSecret: secret},
		raftDir: filepath.Join(r.raft, name), seed: spec.Seed + uint64(len(r.nodes)), // no two nodes make the same request IDs
	}, nil
}

// nodeName is the name of node i of a side, which is its host too.
func nodeName(side string, i int) string { return fmt.Sprintf("%s-%d", side, i+1) }

// upstreams are the nodes of the target as the edge reaches them.
func upstreams(target cluster.Side) (urls []string) {
	for i := range max(1, target.Nodes) {
		urls = append(urls, "http://"+nodeName(cluster.Target, i)+":"+apiPort)
	}
	return urls
}

// configOf reads a configuration as a node reads its file.
func configOf(path string, c map[string]any) (config.Config, error) {
	body, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(path, body, 0o600)
	}
	if err != nil {
		return config.Config{}, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	return config.Load(config.Sources{File: path})
}

// startEdge starts tap or fake and the link before it.
func (r *rig) startEdge(ctx context.Context, b *Backend, spec cluster.Spec) error {
	id, err := cluster.NewEdge("link", "elsewhere")
	if err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	edge := r.net.Host("edge")
	listen := func(network, address string) (net.Listener, error) {
		if strings.HasPrefix(address, "elsewhere:") {
			return r.net.Host("elsewhere").Listen(network, address)
		}
		return edge.Listen(network, address)
	}
	via := fakes.Net{Listen: listen, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return edge.Dial(ctx, network, addr, nil)
	}}
	r.remote = cluster.Remote{URL: "https://link:" + linkPort, CAPEM: id.CAPEM, OtherCAPEM: id.OtherCAPEM}
	if spec.Fake != nil {
		r.remote.User, r.remote.Password = "link", b.secret("fake user")
		r.secrets = append(r.secrets, r.remote.Password)
		r.fake, err = fakes.StartTarget(fakes.TargetConfig{
			Name: "target-1", Listen: ":" + edgePort, Cert: id.Cert, Faces: id.Faces, Script: *spec.Fake, Epoch: spec.Epoch, Net: via,
			Users: map[string]string{r.remote.User: r.remote.Password}, Elsewhere: "elsewhere:" + linkPort, ElsewhereURL: "https://elsewhere:" + linkPort,
		})
	} else {
		r.tap, err = fakes.StartTap(fakes.TapConfig{
			Name: "edge", Listen: ":" + edgePort, Upstreams: upstreams(spec.Target), Cert: id.Cert, Faces: id.Faces, Epoch: spec.Epoch, Net: via,
		})
	}
	if err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	r.link = newLink(r.net.Host("link"), ":"+linkPort, "edge:"+edgePort)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(id.CAPEM)) {
		return fmt.Errorf("%w: the CA of the edge holds no certificate", cluster.ErrTrouble)
	}
	r.link.prober = &cluster.Prober{Host: "link", Roots: roots, Dial: func(ctx context.Context) (net.Conn, error) {
		return r.harness.Dial(ctx, "tcp", "link:"+linkPort, nil)
	}}
	return r.link.Enable(ctx)
}

// Nodes lists the nodes of a side, spares once they have joined.
func (r *rig) Nodes(side string) []cluster.Node {
	var out []cluster.Node
	for _, n := range r.nodes {
		if n.side == side && !n.spare.Load() {
			out = append(out, n)
		}
	}
	return out
}

// Node finds a node by name.
func (r *rig) Node(name string) (cluster.Node, error) {
	for _, n := range r.nodes {
		if n.name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no node %s", cluster.ErrTrouble, name)
}

// Link is the way from source to target.
func (r *rig) Link() cluster.Link { return r.link }

// Remote is what the source's remote is made of.
func (r *rig) Remote() cluster.Remote { return r.remote }

// Admin is the root admin of both clusters.
func (r *rig) Admin() (user, password string) { return "admin", r.admin }

// Wire is everything that tap or fake saw so far.
func (r *rig) Wire(ctx context.Context) ([]ledger.WireRequest, error) {
	if r.fake != nil {
		return r.fake.Requests(ctx)
	}
	return r.tap.Requests(ctx)
}

// Show gives every connection that comes from now on another face (cluster.Faced).
func (r *rig) Show(_ context.Context, face string) error {
	if r.fake != nil {
		return r.fake.Show(face)
	}
	return r.tap.Show(face)
}

// Met is what the edge met so far, by face.
func (r *rig) Met(context.Context) (map[string]fakes.FaceCount, error) {
	if r.fake != nil {
		return r.fake.Met(), nil
	}
	return r.tap.Met(), nil
}

// Answer changes what the source's lookups of the link's name are answered (cluster.Named).
func (r *rig) Answer(_ context.Context, answers []string) error {
	return r.net.answer(linkHost, answers)
}

// Asked is what became of these answers.
func (r *rig) Asked(context.Context) (cluster.Lookups, error) { return r.net.asked(), nil }

// Steps is the use of the fake's script (cluster.Scripted).
func (r *rig) Steps(context.Context) ([]ledger.Step, error) {
	if r.fake == nil {
		return nil, nil
	}
	return r.fake.Steps(), nil
}

// Trouble lists nodes that ended by themselves (cluster.Watched).
func (r *rig) Trouble() []string {
	var out []string
	for _, n := range r.nodes {
		if err := n.failure(); err != nil {
			out = append(out, fmt.Sprintf("%s failed: %v", n.name, err))
		}
	}
	return out
}

// Secrets lists every secret of the rig.
func (r *rig) Secrets() []string { return r.secrets }

// Close ends everything, so that no goroutine is left in the bubble.
func (r *rig) Close(ctx context.Context) error {
	r.net.mend()
	var errs []error
	for _, n := range r.nodes {
		_ = n.Resume(ctx)
		if n.Running() {
			errs = append(errs, n.Stop(ctx))
		}
	}
	if r.link != nil {
		r.link.close()
	}
	if r.tap != nil {
		errs = append(errs, r.tap.Close())
	}
	if r.fake != nil {
		errs = append(errs, r.fake.Close())
	}
	r.http.CloseIdleConnections()
	r.net.Close()
	for _, n := range r.nodes {
		errs = append(errs, n.log.file.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(r.raft))...)
}

// Left is cluster.Leftovers: all but this folder lives and dies with the process.
func (r *rig) Left(context.Context) ([]string, error) {
	if _, err := os.Lstat(r.raft); err == nil {
		return []string{r.raft}, nil
	}
	return nil, nil
}
