package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two rigs at once, also of two processes, get no port twice: each pair is held until its rig is closed.
func TestPortsAreHeld(t *testing.T) {
	var a, b ports
	mine, err := a.pair()
	require.NoError(t, err)
	require.False(t, b.hold(mine), "another rig took a port that was given")
	require.False(t, a.hold(mine), "a port was given twice")
	require.NoError(t, a.close())
	require.True(t, b.hold(mine))
	require.NoError(t, b.close())
}
