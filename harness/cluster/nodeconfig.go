package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
)

// place is where a node listens and is found.
type place struct {
	name     string
	api      string // host:port that it listens on
	raft     string // host:port that it listens on; node RPC takes the next port
	raftSeen string // host:port by which its peers find it
	rpc      string // host:port of its node RPC, for the harness
	data     string
}

// layout is where node i is among the places of its side, of which the first ones make the cluster; the others are spares.
type layout struct {
	places   []place
	first, i int
	proof    string // the folder of the files of mutual TLS, where there are several nodes
}

// nodeConfig is the JSON config of a node: what the rig needs, then extra, then the scenario's overrides. A spare knows the first members, and they
// do not know it.
func nodeConfig(at layout, extra, override map[string]any) ([]byte, error) {
	p := at.places[at.i]
	cluster := map[string]any{"node_id": p.name, "addr": p.raft}
	c := map[string]any{
		"http":    map[string]any{"addr": p.api},
		"cluster": cluster,
		"storage": map[string]any{"data_dir": p.data},
	}
	if at.first > 1 {
		var peers, members []any
		for _, q := range at.places[:at.first] {
			peers, members = append(peers, q.name+"@"+q.raftSeen), append(members, q.name)
		}
		if at.i >= at.first {
			peers, cluster["initial_members"] = append(peers, p.name+"@"+p.raftSeen), members
		}
		cluster["peers"] = peers
		cluster["advertise_addr"] = p.raftSeen
		maps.Copy(cluster, proofSettings(at.proof))
	}
	body, err := json.MarshalIndent(Merge(Merge(c, extra), override), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("config of %s: %w", p.name, err)
	}
	return body, nil
}

// remotesConfig lets a source dial the link and nothing else.
func remotesConfig(port int, loopback bool) map[string]any {
	r := map[string]any{"allowed_ports": []any{port}, "api_hop_encrypted": true}
	if loopback {
		r["allow_addresses"] = []any{"127.0.0.1"}
	}
	return map[string]any{"remotes": r}
}

// Merge lays over on base; objects are merged, anything else is replaced. Neither argument changes.
func Merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range over {
		below, isMap := out[name].(map[string]any)
		above, overMap := v.(map[string]any)
		if isMap && overMap {
			v = Merge(below, above)
		}
		out[name] = v
	}
	return out
}
