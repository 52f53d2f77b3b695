package bench

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"narad.example/narad/wire"
)

// founders is how many nodes begin a cluster.
const founders = 3

// several is a source of several nodes.
type several struct {
	name  string
	nodes []*node
}

// newSeveral starts n nodes, founders at least, that know of each other and may dial these targets, and waits until all are ready. Those beyond the
// founders join.
func (s *stand) newSeveral(ctx context.Context, name string, n int, targets ...string) (*several, error) {
	ports, err := portsOf(targets...)
	if err != nil {
		return nil, err
	}
	t := &several{name: name}
	var places []placed
	var peers, first []string
	for i := range n {
		p, err := s.place(fmt.Sprintf("%s-%d", name, i+1))
		if err != nil {
			return nil, err
		}
		places, peers = append(places, p), append(peers, p.name+"@"+p.raft)
		if i < founders {
			first = append(first, p.name)
		}
	}
	key := clusterKey()
	for _, p := range places {
		c := settings{"cluster": {"peers": peers, "initial_members": first, "advertise_addr": p.raft}, "security": {"allow_plaintext_raft": true}}
		if len(ports) > 0 {
			c["remotes"] = remotesAt(ports)
		}
		n, err := s.launch(p, key, c)
		if err != nil {
			return nil, err
		}
		t.nodes = append(t.nodes, n)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range t.nodes {
		g.Go(func() error { return n.ready(ctx) })
	}
	return t, g.Wait()
}

// end kills the nodes: what they hold is of no more use.
func (t *several) end() {
	for _, n := range t.nodes {
		n.kill()
	}
}

// check is the error of the nodes that are gone.
func (t *several) check() error {
	var all []error
	for _, n := range t.nodes {
		all = append(all, n.check())
	}
	return errors.Join(all...)
}

// leader returns who leads and the others.
func (t *several) leader(ctx context.Context) (leads *node, others []*node, err error) {
	all, err := t.nodes[0].client.Members(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(all.Members, func(m wire.Member) bool { return m.Leader })
	if i < 0 {
		return nil, nil, fmt.Errorf("nobody leads %s", t.name)
	}
	for _, n := range t.nodes {
		if n.name == all.Members[i].ID {
			leads = n
		} else {
			others = append(others, n)
		}
	}
	if leads == nil {
		return nil, nil, fmt.Errorf("%s is led by %q, which is none of its nodes", t.name, all.Members[i].ID)
	}
	return leads, others, nil
}

// threeNodes starts the cluster whose figures stand beside those of the pair, when it is first needed: it copies to the pair's target.
func (s *stand) threeNodes(ctx context.Context) (*several, *pair, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s.three != nil {
		return s.three, p, s.three.check()
	}
	t, err := s.newSeveral(ctx, "three", founders, p.target.addr)
	if err != nil {
		return nil, nil, err
	}
	err = s.remote(ctx, t.nodes[0], p.password, wire.CreateRemote{Name: remoteName, URL: "https://" + p.target.addr})
	if err != nil {
		return nil, nil, err
	}
	s.three = t
	return t, p, nil
}

// placed is where a node will be.
type placed struct{ name, api, raft, rpc, pprof string }

// place takes four ports. Node RPC listens on the port after Raft's, by which its peers find it.
func (s *stand) place(name string) (placed, error) {
	p := placed{name: name}
	var err error
	for _, addr := range []*string{&p.api, &p.pprof} {
		if *addr, err = s.port(); err != nil {
			return p, err
		}
	}
	for p.rpc == "" {
		if p.raft, err = s.port(); err != nil {
			return p, err
		}
		next, err := s.port()
		if err != nil {
			return p, err
		}
		if follows(p.raft, next) {
			p.rpc = next
		}
	}
	return p, nil
}

// follows tells whether b's port is the one after a's.
func follows(a, b string) bool {
	ports, err := portsOf(a, b)
	return err == nil && ports[1] == ports[0]+1
}

// clusterKey is a cluster secret.
func clusterKey() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return base64.StdEncoding.EncodeToString(key[:])
}
