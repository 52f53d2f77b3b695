package cluster

import (
	"context"
	"net"
	"slices"
)

// openMesh makes the network between nodes, once, where it can be told which process dialled. A node that is alone needs none.
func (r *processRig) openMesh(spec Spec) (err error) {
	if !ownersKnown || spec.Source.Nodes < 2 && spec.Target.Nodes < 2 {
		return nil
	}
	if r.mesh, err = newMesh(loopback(0), r.dialler); err != nil {
		return err
	}
	r.meshed = &meshed{at: func(context.Context) (string, error) { return r.mesh.ways.Addr().String(), nil }}
	return nil
}

// doors opens both doors of a node beside each other, as the node's own ports are.
func (r *processRig) doors(p *place, own int) error {
	if r.mesh == nil {
		return nil
	}
	seen, err := r.ports.pair()
	if err != nil {
		return err
	}
	p.raftSeen = loopback(seen)
	r.meshed.nodes = append(r.meshed.nodes, p.name)
	if err = r.mesh.open(door{p.name, CarriesRaft}, loopback(seen), loopback(own)); err != nil {
		return err
	}
	return r.mesh.open(door{p.name, CarriesRPC}, loopback(seen+1), loopback(own+1))
}

// wayOut opens a door through which the nodes of a source of several dial the target, and returns its port; link is the port behind it. One node
// needs none: its way is the link.
func (r *processRig) wayOut(spec Spec, link int) (int, error) {
	if r.mesh == nil || spec.Source.Nodes < 2 {
		return link, nil
	}
	seen, err := r.ports.pair()
	if err != nil {
		return 0, err
	}
	r.meshed.nodes = append(r.meshed.nodes, Target)
	return seen, r.mesh.open(door{Target, ""}, loopback(seen), loopback(link))
}

// dialler is the node whose process has the other end of a connection on loopback.
func (r *processRig) dialler(c net.Conn) string {
	socket := socketOf(c.RemoteAddr(), c.LocalAddr())
	if socket == "" {
		return ""
	}
	r.building.Lock()
	own := slices.Clone(r.own)
	r.building.Unlock()
	for _, n := range own {
		if lives := n.started(); len(lives) > 0 && has(lives[len(lives)-1], socket) {
			return n.name
		}
	}
	return ""
}

// rpcs lists the node RPC of the nodes of a side that run.
func (r *processRig) rpcs(side string) func(context.Context) []string {
	return func(context.Context) (list []string) {
		for _, n := range r.nodes[side] {
			if p, ok := n.(*processNode); ok && p.Running() {
				list = append(list, p.rpc)
			}
		}
		return list
	}
}
