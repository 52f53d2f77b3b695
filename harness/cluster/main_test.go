package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

var built struct {
	once sync.Once
	dir  string
	err  error
}

// helperEnv makes the test binary a harness that starts a rig and waits to be killed: the name of a backend.
const helperEnv = "CHAOS_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		helper(name)
		return
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	if code == 0 {
		// Toxiproxy leaves a goroutine of a toxic now and then when a link goes down.
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code) //nolint:forbidigo // TestMain is this test's main
}

func helper(name string) {
	b := cluster.Processes()
	if name == "container" {
		b = cluster.Containers()
	}
	binaries := cluster.Binaries{Narad: os.Args[1], Chaos: os.Args[2]}
	if _, err := b.Start(context.Background(), cluster.Spec{Fake: &fakes.Script{}, Binaries: binaries}); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1) //nolint:forbidigo // the helper is a program of its own
	}
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}

// standins builds the stand-in binaries once. NARAD_BIN and CHAOS_BIN name real ones instead.
func standins(t *testing.T) cluster.Binaries {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "narad-chaos-standin-"); built.err != nil {
			return
		}
		for _, name := range []string{"narad", "chaos"} {
			build := exec.Command("go", "build", "-o", filepath.Join(built.dir, name), "./testdata/"+name)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				built.err = err
				_, _ = os.Stderr.Write(out)
				return
			}
		}
	})
	require.NoError(t, built.err)
	b := cluster.Binaries{Narad: filepath.Join(built.dir, "narad"), Chaos: filepath.Join(built.dir, "chaos")}
	if given := os.Getenv("NARAD_BIN"); given != "" {
		b.Narad = given
	}
	if given := os.Getenv("CHAOS_BIN"); given != "" {
		b.Chaos = given
	}
	return b
}
