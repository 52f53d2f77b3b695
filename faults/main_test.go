package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// standin is the broker's stand-in of the backends' tests.
var standin string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err == nil && code == 0 {
		// Toxiproxy leaves a goroutine of a toxic now and then when a link goes down.
		err = goleak.Find(goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // TestMain is this test's main
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "narad-chaos-standin-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	standin = filepath.Join(dir, "narad")
	if out, berr := exec.Command("go", "build", "-o", standin, "../harness/cluster/testdata/narad").CombinedOutput(); berr != nil {
		return 1, fmt.Errorf("%w: %s", berr, out)
	}
	return m.Run(), nil
}

// start is a rig of processes with a real far end.
func start(t *testing.T) cluster.Rig {
	t.Helper()
	rig, err := cluster.Processes().Start(t.Context(), cluster.Spec{
		Fake: &fakes.Script{Topics: []fakes.ScriptTopic{{Name: "t"}}}, Binaries: cluster.Binaries{Narad: standin},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rig.Close(context.Background())) })
	return rig
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// deaf is a rig whose link says that it did what it was told, and did nothing.
type deaf struct {
	cluster.Rig
	set []string
}

type deafLink struct {
	cluster.Link
	rig *deaf
}

func (d *deaf) Link() cluster.Link { return &deafLink{Link: d.Rig.Link(), rig: d} }

func (l *deafLink) Disable(context.Context) error { return nil }

func (l *deafLink) Add(_ context.Context, t cluster.Toxic) error {
	l.rig.set = append(l.rig.set, t.Name)
	return nil
}

func (l *deafLink) Remove(context.Context, string) error {
	l.rig.set = nil
	return nil
}

func (l *deafLink) State(context.Context) (bool, []string, error) { return true, l.rig.set, nil }

// stuck is a rig whose link cannot be brought up again.
type stuck struct{ cluster.Rig }

type stuckLink struct{ cluster.Link }

func (s *stuck) Link() cluster.Link { return &stuckLink{s.Rig.Link()} }

func (l *stuckLink) Enable(context.Context) error { return nil }

const short = 10 * time.Millisecond
