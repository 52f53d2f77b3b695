package faults

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
)

// brittle is a link that carries bytes in 1 ms and through a toxic in late, but breaks at times.
type brittle struct {
	cluster.Rig
	breaks func() bool
	late   time.Duration
	there  bool
}

func (b *brittle) Link() cluster.Link { return carried{brittle: b} }

// carried is what the fault sees of it.
type carried struct {
	cluster.Link
	*brittle
}

func (b carried) Add(context.Context, cluster.Toxic) error { b.there = true; return nil }

func (b carried) Probe(context.Context, int) (time.Duration, error) {
	if b.breaks() {
		return 0, io.ErrUnexpectedEOF
	}
	if b.there {
		return b.late, nil
	}
	return time.Millisecond, nil
}

// A latency that meets a link which another fault resets still shows itself, once that lets a probe pass; one that never does, or that
// changes nothing, leaves no evidence.
//
// covers: HAR-02
func TestAProbeOutlastsAnotherFault(t *testing.T) {
	for name, c := range map[string]struct {
		breaks time.Duration
		late   time.Duration
		landed bool
	}{
		"reset for a second": {time.Second, 80 * time.Millisecond, true},
		"reset for a minute": {time.Minute, 80 * time.Millisecond, false},
		"no effect":          {time.Second, time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &brittle{late: c.late}
				start := time.Now()
				b.breaks = func() bool { return b.there && time.Since(start) < c.breaks }
				f := &Toxic{Toxic: cluster.Latency("", cluster.Upstream, 60*time.Millisecond)}
				landed, _, err := f.Inject(t.Context(), b, rand.New(rand.NewPCG(1, 2)))
				require.NoError(t, err)
				require.Equal(t, c.landed, landed)
			})
		})
	}
}
