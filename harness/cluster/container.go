package cluster

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	testcontainers "github.com/testcontainers/testcontainers-go"
	"golang.org/x/sync/errgroup"

	"narad.example/fakes"
)

// containerBackend runs every part in a container of its own, all from one image.
type containerBackend struct{ images *images }

// Containers is the backend that needs a container engine.
func Containers() Backend { return &containerBackend{images: newImages()} }

func (*containerBackend) Name() string { return "container" }

func (*containerBackend) Available(ctx context.Context) error {
	e, err := engine(ctx)
	if err != nil {
		return err
	}
	return e.Close()
}

func (*containerBackend) Sweep(ctx context.Context) error {
	e, err := engine(ctx)
	if err != nil {
		return err
	}
	return errors.Join(sweepEngine(ctx, e), e.Close())
}

func (b *containerBackend) Start(ctx context.Context, spec Spec) (Rig, error) {
	e, err := engine(ctx)
	if err != nil {
		return nil, err
	}
	binaries := spec.Binaries
	if len(spec.Source.Older)+len(spec.Target.Older) == 0 {
		binaries.Older = ""
	} else if _, err = binaries.olderBuild(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	r := newContainerRig(e, spec)
	image, err := b.images.ensure(ctx, e, binaries)
	if err == nil {
		err = r.build(ctx, image)
	}
	if err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, errors.Join(err, r.Close(ending))
	}
	return r, nil
}

// configPath is where a node's container has its configuration.
const configPath = "/narad.json"

// part is what one container of a rig is made from.
type part struct {
	name   string
	nets   []string // names of data networks; the control network is every part's
	ports  []int    // published on the control network
	argv   []string
	env    map[string]string
	idle   bool                                      // made and not started
	older  bool                                      // it poses as an older release
	config []byte                                    // /narad.json, nil for none
	files  map[string]string                         // more of them, by name in the root
	anew   func(over map[string]any) ([]byte, error) // the same with more laid over it
}

// build makes the networks, starts all parts at once, and waits for them: first the clusters, then the link.
func (r *containerRig) build(ctx context.Context, image string) error {
	id, err := NewEdge("link", "mesh", "127.0.0.1", "localhost")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(id.CAPEM))
	r.web = newWeb(roots)
	far := "link"
	if r.throughMesh() {
		far = "mesh"
	}
	r.remote = Remote{URL: "https://" + far + ":" + strconv.Itoa(linkPort), CAPEM: id.CAPEM, OtherCAPEM: id.OtherCAPEM}
	if r.spec.Fake != nil {
		r.remote.User, r.remote.Password = fakeUser, r.secrets.fake
	}
	r.watch()
	nets, err := r.networks(ctx)
	if err != nil {
		return err
	}
	parts, err := r.parts(id)
	if err != nil {
		return err
	}
	group, starting := errgroup.WithContext(ctx)
	for _, p := range parts {
		group.Go(func() error { return r.start(starting, image, nets, p) })
	}
	if err = group.Wait(); err != nil {
		return err
	}
	r.arrange()
	for _, side := range []string{Target, Source} {
		for _, n := range r.nodes[side] {
			if c, ok := n.(*containerNode); ok && !c.waits() {
				if err = c.ready(ctx); err != nil {
					return err
				}
			}
		}
	}
	return r.startLink(ctx, roots)
}

// networks makes one network with a gateway, through which ports are published, and two without for the data.
func (r *containerRig) networks(ctx context.Context) (map[string]string, error) {
	names := map[string]string{}
	for _, net := range []string{"control", Source, Target} {
		n, err := newNetwork(ctx, net != "control", r.labels)
		if err != nil {
			return nil, fmt.Errorf("%w: network: %w", ErrTrouble, err)
		}
		r.nets = append(r.nets, n)
		names[net] = n.Name
	}
	return names, nil
}

// parts lists the containers of the rig.
func (r *containerRig) parts(id Edge) ([]part, error) {
	far := part{
		name: "edge", nets: []string{Target}, ports: []int{controlPort}, argv: []string{"/chaos", RoleTap},
	}
	listen, control := "0.0.0.0:"+strconv.Itoa(linkPort), "0.0.0.0:"+strconv.Itoa(controlPort)
	var config any
	if r.spec.Fake != nil {
		far.name, far.argv, far.ports = "target-1", []string{"/chaos", RoleFake}, append(far.ports, linkPort)
		config = fakes.TargetConfig{
			Name: far.name, Listen: listen, Control: control, Cert: id.Cert, Faces: id.Faces, Epoch: r.spec.Epoch, Script: *r.spec.Fake,
			Users: map[string]string{fakeUser: r.secrets.fake},
		}
	} else {
		tap := fakes.TapConfig{Name: far.name, Listen: listen, Control: control, Cert: id.Cert, Faces: id.Faces, Epoch: r.spec.Epoch}
		for i := range max(r.spec.Target.Nodes, 1) {
			tap.Upstreams = append(tap.Upstreams, "http://target-"+strconv.Itoa(i+1)+":"+strconv.Itoa(apiPort))
		}
		config = tap
	}
	body, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("config of %s: %w", far.name, err)
	}
	far.env = map[string]string{fakes.ConfigEnv: string(body)}
	out := []part{far, {
		name: "link", nets: []string{Source, Target}, ports: []int{toxiproxyPort, linkPort}, argv: []string{"/chaos", RoleToxiproxy},
	}}
	r.farEnd = far.name
	sources, err := r.side(Source, r.spec.Source, remotesConfig(linkPort, false))
	if err != nil {
		return nil, err
	}
	out = append(out, sources...)
	if r.spec.Fake == nil {
		targets, err := r.side(Target, r.spec.Target, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, targets...)
	}
	return r.meshPart(out)
}

// side lists the nodes of one cluster. A single node keeps Raft on loopback, where it needs no TLS.
func (r *containerRig) side(side string, want Side, extra map[string]any) ([]part, error) {
	first := max(want.Nodes, 1)
	var places []place
	for i := range first + want.Spares {
		name := side + "-" + strconv.Itoa(i+1)
		raft := ":" + strconv.Itoa(raftPort)
		p := place{name: name, api: ":" + strconv.Itoa(apiPort), raft: "0.0.0.0" + raft, data: "/data"}
		if first == 1 {
			p.raft = "127.0.0.1" + raft
		} else {
			p.raftSeen = r.doors(name)
		}
		places = append(places, p)
	}
	var proof map[string]string
	if first > 1 {
		var err error
		if proof, err = newRaftProof("mesh"); err != nil {
			return nil, err
		}
	}
	var out []part
	for i, p := range places {
		at := layout{places, first, i, "/"}
		config, err := nodeConfig(at, extra, want.Config)
		if err != nil {
			return nil, err
		}
		node := part{
			name: p.name, nets: []string{side}, ports: []int{apiPort}, env: r.secrets.env(side), config: config, files: proof, idle: i >= first,
			anew: func(over map[string]any) ([]byte, error) { return nodeConfig(at, extra, Merge(want.Config, over)) },
			argv: []string{naradPath, "serve", "--config", configPath},
		}
		if first > 1 {
			node.ports = append(node.ports, rpcPort)
		}
		if node.older = slices.Contains(want.Older, i+1); node.older {
			node.env[olderEnv], node.argv = "1", []string{"/chaos", RoleNode}
		}
		out = append(out, node)
		r.order[side] = append(r.order[side], p.name)
	}
	return out, nil
}

// start creates and starts one container. It does not wait for the program in it.
func (r *containerRig) start(ctx context.Context, image string, nets map[string]string, p part) error {
	labels := maps.Clone(r.labels)
	labels[labelNode] = p.name
	req := testcontainers.ContainerRequest{
		Image: image, Entrypoint: p.argv, Env: p.env, Labels: labels, Networks: []string{nets["control"]}, NetworkAliases: map[string][]string{},
	}
	for _, net := range p.nets {
		req.Networks = append(req.Networks, nets[net])
		req.NetworkAliases[nets[net]] = []string{p.name}
	}
	for _, port := range p.ports {
		req.ExposedPorts = append(req.ExposedPorts, strconv.Itoa(port)+"/tcp")
	}
	if p.config != nil {
		req.Files = []testcontainers.ContainerFile{{Reader: bytes.NewReader(p.config), ContainerFilePath: configPath, FileMode: 0o644}}
	}
	for name, text := range p.files {
		req.Files = append(req.Files, testcontainers.ContainerFile{Reader: strings.NewReader(text), ContainerFilePath: "/" + name, FileMode: 0o644})
	}
	if p.older {
		req.Files = append(req.Files, testcontainers.ContainerFile{Reader: strings.NewReader(olderPath), ContainerFilePath: releasePath, FileMode: 0o644})
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: !p.idle})
	if c != nil {
		r.add(&box{name: p.name, c: c, engine: r.engine, anew: p.anew, idle: p.idle, older: p.older})
	}
	if err != nil {
		return fmt.Errorf("%w: start of %s: %w", ErrTrouble, p.name, err)
	}
	return nil
}

// startLink waits for toxiproxy and makes the proxy.
func (r *containerRig) startLink(ctx context.Context, roots *x509.CertPool) error {
	link := r.boxes["link"]
	r.link = &toxiproxyLink{
		api: func(ctx context.Context) (string, error) { return link.at(ctx, toxiproxyPort) },
		prober: &Prober{Host: "link", Roots: roots, Dial: func(ctx context.Context) (net.Conn, error) {
			address, err := link.at(ctx, linkPort)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}},
	}
	for name, at := range map[string]struct {
		port int
		path string
	}{"link": {toxiproxyPort, "/version"}, r.farEnd: {controlPort, "/healthz"}} {
		base := func(ctx context.Context) (string, error) {
			address, err := r.boxes[name].at(ctx, at.port)
			return "http://" + address, err
		}
		if err := r.web.ready(ctx, name, at.path, base, nil); err != nil {
			return fmt.Errorf("%w: %w", ErrTrouble, err)
		}
	}
	port := ":" + strconv.Itoa(linkPort)
	return r.link.create(ctx, "0.0.0.0"+port, r.farEnd+port)
}

// session names a rig in the engine.
func session() string { return hex.EncodeToString(random(8)) }
