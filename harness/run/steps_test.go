package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/invariant"
	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

const pausing = `steps:
  - {at: 1s, action: pause, link: orders-to-b, reason: why not}
  - {at: 6s, action: resume, link: orders-to-b}
`

// covers: HAR-10
func TestAPausedLinkIsLookedAt(t *testing.T) {
	out, folder := playIn(t, calm+pausing, nil)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Contains(t, verdictOf(t, out, invariant.NamePaused).Says, "1 pauses")
	require.NotEmpty(t, folder.Samples)

	out, _ = playIn(t, calm+pausing, func(r *memRig) { r.steered.deaf = true })
	require.Equal(t, ledger.Fail, out.Verdict)
	require.Equal(t, ledger.Fail, verdictOf(t, out, invariant.NamePaused).Verdict)
}

// A skip without a place waits until the link is blocked; the skipped record, and no other, is not owed.
//
// covers: HAR-05
func TestASkipFindsTheBlockedRecord(t *testing.T) {
	poison := func(r *memRig) { r.steered.poison = ledger.NewID(1<<40 | 50) }
	out, folder := playIn(t, calm+"steps: [{at: 0s, action: skip, link: orders-to-b}]\n", poison)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Len(t, folder.Facts.Links[0].Skip, 1)
	require.EqualValues(t, 1, out.Counts.Skipped)

	out, _ = playIn(t, calm+"expect: {drained: 5s}\n", poison)
	require.Equal(t, ledger.Fail, out.Verdict)
	require.Equal(t, ledger.Fail, verdictOf(t, out, invariant.NameStates).Verdict)

	out, _ = playIn(t, calm+"steps: [{at: 1s, action: skip, link: orders-to-b}]\n", nil)
	require.Equal(t, ledger.Inconclusive, out.Verdict)
	require.Contains(t, out.Says, "was not blocked")
}

func TestLimitsAreNamedOneByOne(t *testing.T) {
	var rig *memRig
	out, _ := playIn(t, calm+"steps: [{at: 1s, action: set_limits, limits: {max_in_flight: 2, check_interval_ms: 10000, compression: zstd}}]\n",
		func(r *memRig) { rig = r })
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	two, interval, zstd := 2, int64(10_000), "zstd"
	require.Equal(t, &wire.PatchLimits{MaxInFlight: &two, CheckIntervalMS: &interval, Compression: &zstd}, rig.steered.limits)
}
