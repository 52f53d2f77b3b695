package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"

	"narad.example/fakes"
)

// The roles of the chaos binary in containers, each a subcommand of the same name.
const (
	RoleToxiproxy = "toxiproxy"
	RoleTap       = "tap"
	RoleFake      = "fake"
	RoleMesh      = "mesh"
)

// Roles are all of them.
var Roles = []string{RoleToxiproxy, RoleTap, RoleFake, RoleMesh}

// Ports inside the containers of a rig.
const (
	toxiproxyPort = 8474
	linkPort      = 8443 // of the link, and of the edge or the fake behind it
	controlPort   = 9000 // of the edge or the fake
	apiPort       = 7942
	raftPort      = 7943
	rpcPort       = raftPort + 1
	meshPort      = 9100  // where the mesh is asked
	firstDoor     = 10000 // of the mesh; each node has two, beside each other
)

// RunRole serves one role of a container until ctx ends. Tap and fake take their config from the environment
// (fakes.ConfigEnv).
func RunRole(ctx context.Context, role string) error {
	switch role {
	case RoleToxiproxy:
		return RunToxiproxy(ctx, fmt.Sprintf("0.0.0.0:%d", toxiproxyPort))
	case RoleTap:
		c, err := fakes.ReadConfig[fakes.TapConfig]("")
		if err != nil {
			return err
		}
		return fakes.RunTap(ctx, c)
	case RoleFake:
		c, err := fakes.ReadConfig[fakes.TargetConfig]("")
		if err != nil {
			return err
		}
		return fakes.RunTarget(ctx, c)
	case RoleMesh:
		return runMesh(ctx, os.Getenv(fakes.ConfigEnv))
	}
	return fmt.Errorf("role %q is none of %s", role, strings.Join(Roles, ", "))
}
