package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/explore"
	"narad.example/harness/run"
)

func TestExploreWantsAnEnd(t *testing.T) {
	_, err := chaos(t, "explore")
	require.Equal(t, run.ExitInvalid, code(err))
	_, err = chaos(t, "explore", "--count", "3", "--workers", "0")
	require.Equal(t, run.ExitInvalid, code(err))
}

func TestExploreReportsWhatRan(t *testing.T) {
	var out strings.Builder
	summarize(&out, &explore.Summary{
		Ran: 4, Took: time.Minute, Virtual: time.Hour, Records: 7, Real: 8 * time.Second, CPU: 2 * time.Second, Slowest: 3 * time.Second,
		Doubts:   []explore.Doubt{{Number: 2, Says: "too little", Dir: "there"}},
		Failures: []explore.Failure{{Number: 3, Judge: "no gap", File: "x.yaml"}},
	})
	require.Contains(t, out.String(), "4 schedules in 1m0s (4 a minute), 1.0 hours of virtual time, 7 records; a schedule took 2s (500ms of processor time), the slowest 3s")
	require.Contains(t, out.String(), "inconclusive: schedule 2: too little (there)")
	require.Contains(t, out.String(), "FAILED: schedule 3: no gap: x.yaml")
}
