package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"narad.example/fakes"
)

// The roles of the chaos binary in containers, each a subcommand of the same name.
const (
	RoleToxiproxy = "toxiproxy"
	RoleTap       = "tap"
	RoleFake      = "fake"
	RoleMesh      = "mesh"
	RoleNode      = "node" // a node that may change its release
)

// Roles are all of them.
var Roles = []string{RoleToxiproxy, RoleTap, RoleFake, RoleMesh, RoleNode}

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
	case RoleNode:
		return runNode()
	}
	return fmt.Errorf("role %q is none of %s", role, strings.Join(Roles, ", "))
}

// Where the image has both builds of the broker, and where a container says which of them it runs.
const (
	naradPath   = "/narad"
	olderPath   = "/narad-chaos"
	releasePath = "/release"
)

// runNode becomes the broker that the container's file names. A copy of that file is small, and a copy of a broker is not.
func runNode() error {
	path, err := os.ReadFile(releasePath)
	if err != nil {
		return fmt.Errorf("which release this node runs: %w", err)
	}
	argv := []string{string(path), "serve", "--config", configPath}
	if err = syscall.Exec(argv[0], argv, os.Environ()); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}
