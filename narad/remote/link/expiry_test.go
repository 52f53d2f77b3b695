package link

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// expiring is a rig with an allowlist whose clock stands so long before the end of the target's certificate.
func expiring(t *testing.T, left *time.Duration, hosts ...string) (r *rig, end time.Time) {
	t.Helper()
	guard, err := outbound.NewGuard([]int{7942}, hosts, nil)
	require.NoError(t, err)
	r = newRig(t, func(o *Options) {
		o.Guard = guard
		o.Now = func() time.Time { return end.Add(-*left) }
	})
	end = r.expires
	r.topic("orders", weekMS)
	r.remote("dr")
	return r, end
}

// A target's certificate that expires within 14 days is a warning of a test, a dry run and an attach, which pass all the same. The report
// also tells when it expires and what the connect time lets a lane carry; the node's row has both too.
//
// covers: TGT-03, TGT-05
func TestACertificateThatExpiresSoon(t *testing.T) {
	const day = 24 * time.Hour
	left := 14 * day
	r, end := expiring(t, &left, "*.example.com", "example.com")
	at := end.UTC().Format(time.RFC3339)
	warning := []string{"the target's certificate expires within 14 days: at " + at}
	for d, want := range map[time.Duration][]string{15 * day: nil, 14 * day: nil, 14*day - time.Second: warning, time.Second: warning} {
		left = d
		got, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
		require.NoError(t, err)
		require.Equal(t, "pass", got.Result)
		c := got.Checks[0]
		require.Equal(t, want, c.Warnings, d)
		require.Equal(t, at, c.ServerCertNotAfter)
		require.Positive(t, *c.RTTMS)
		require.InDelta(t, 100_000/(*c.RTTMS+5), *c.LaneCapacityPerS, 1e-6)
	}
	left = day
	dry := attach("orders-dr")
	dry.DryRun = true
	got, err := r.Attach(t.Context(), root, "orders", dry)
	require.NoError(t, err)
	require.Equal(t, warning, got.Warnings)
	got, err = r.Attach(t.Context(), root, "orders", attach("orders-dr"))
	require.NoError(t, err)
	require.Equal(t, warning, got.Warnings)

	shown, err := r.Remote(t.Context(), "dr", true)
	require.NoError(t, err)
	require.Equal(t, at, *shown.Nodes[0].ServerCertNotAfter)
	require.Positive(t, *shown.Nodes[0].RTTMS)
}

// Without an allowlist a check tells neither the certificate's end nor the connect time, nor warns of it: it would tell what stands at
// any address.
//
// covers: TGT-03, TGT-05
func TestACheckWithoutAnAllowlistTellsLittle(t *testing.T) {
	left := time.Hour
	r, _ := expiring(t, &left)
	got, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
	require.NoError(t, err)
	require.Equal(t, []wire.Check{{Node: "n1", Result: "pass", CredentialVersion: 1, Posture: sound()}}, got.Checks)
	stub, err := r.Attach(t.Context(), root, "orders", attach("orders-dr"))
	require.NoError(t, err)
	require.Empty(t, stub.Warnings)
}
