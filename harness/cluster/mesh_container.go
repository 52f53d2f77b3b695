package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	"narad.example/fakes"
)

// meshConfig is what the container of the mesh is told: the nodes in the order of their doors, and where the link is, when the source dials it
// through the mesh.
type meshConfig struct {
	Nodes []string
	Link  string
}

// doors gives a node its doors, and tells where the one for Raft is.
func (r *containerRig) doors(node string) string {
	if r.meshed == nil {
		r.meshed = &meshed{at: func(ctx context.Context) (string, error) { return r.box("mesh").at(ctx, meshPort) }}
	}
	r.meshed.nodes = append(r.meshed.nodes, node)
	return "mesh:" + strconv.Itoa(firstDoor+2*(len(r.meshed.nodes)-1))
}

// meshPart adds the mesh to the rig's parts, when any node has doors.
func (r *containerRig) meshPart(parts []part) ([]part, error) {
	if r.meshed == nil {
		return parts, nil
	}
	config := meshConfig{Nodes: slices.Clone(r.meshed.nodes)}
	if r.throughMesh() {
		config.Link = net.JoinHostPort("link", strconv.Itoa(linkPort))
		r.meshed.nodes = append(r.meshed.nodes, Target)
	}
	body, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("%w: mesh: %w", ErrTrouble, err)
	}
	return append(parts, part{
		name: "mesh", nets: []string{Source, Target}, ports: []int{meshPort}, argv: []string{"/chaos", RoleMesh},
		env: map[string]string{fakes.ConfigEnv: string(body)},
	}), nil
}

// throughMesh tells whether the nodes of the source dial the target through the mesh. One node needs no door: its way is the link.
func (r *containerRig) throughMesh() bool { return r.spec.Source.Nodes > 1 }

// rpcs lists where the node RPC of the nodes of a side that run is published.
func (r *containerRig) rpcs(side string) func(context.Context) []string {
	return func(ctx context.Context) (list []string) {
		for _, n := range r.nodes[side] {
			c, ok := n.(*containerNode)
			if !ok || !c.Running() {
				continue
			}
			if address, err := c.box.at(ctx, rpcPort); err == nil {
				list = append(list, address)
			}
		}
		return list
	}
}

// runMesh serves the mesh of a rig of containers until ctx ends.
func runMesh(ctx context.Context, config string) error {
	var c meshConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("config of the mesh: %w", err)
	}
	m, err := newMesh("0.0.0.0:"+strconv.Itoa(meshPort), func(dialled net.Conn) string { return named(ctx, c.Nodes, dialled.RemoteAddr()) })
	if err != nil {
		return err
	}
	defer m.close()
	for i, node := range c.Nodes {
		for above, carries := range []string{CarriesRaft, CarriesRPC} {
			listen := "0.0.0.0:" + strconv.Itoa(firstDoor+2*i+above)
			if err = m.open(door{node, carries}, listen, net.JoinHostPort(node, strconv.Itoa(raftPort+above))); err != nil {
				return err
			}
		}
	}
	if c.Link != "" {
		if err = m.open(door{Target, ""}, "0.0.0.0:"+strconv.Itoa(linkPort), c.Link); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// named is the node whose address a connection comes from; the engine's name server knows where each is now.
func named(ctx context.Context, nodes []string, from net.Addr) string {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		return ""
	}
	for _, node := range nodes {
		if addresses, err := net.DefaultResolver.LookupHost(ctx, node); err == nil && slices.Contains(addresses, host) {
			return node
		}
	}
	return ""
}
