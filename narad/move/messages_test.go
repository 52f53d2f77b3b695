package move

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An answer comes back as it was, and one that is cut or lies about a length is refused whole.
//
// covers: BRK-07
func TestAnAnswerOfASource(t *testing.T) {
	want := bounds{Oldest: 7, High: 12}
	bodies := [][]byte{[]byte("one"), {}, []byte("a third")}
	answer, err := encodeRead(want, bodies)
	require.NoError(t, err)
	b, run, err := decodeRead(answer, 9)
	require.NoError(t, err)
	require.Equal(t, want, b)
	require.Equal(t, bodies, run.Bodies)
	require.EqualValues(t, 9, run.First)
	require.EqualValues(t, 12, run.Next())

	ends := map[int]int{len(answer): 3, len(answer) - 11: 2, len(answer) - 15: 1, len(answer) - 22: 0} // after so many bytes so many records are whole
	for n := range answer {
		_, run, err = decodeRead(answer[:n:n], 9)
		if whole, at := ends[n]; at {
			require.NoError(t, err, n)
			require.Len(t, run.Bodies, whole)
			continue
		}
		require.ErrorIs(t, err, errBody, n)
		require.Empty(t, run.Bodies)
	}
	answer[len(answer)-11] = 0xff // the length of the third
	_, _, err = decodeRead(answer, 9)
	require.ErrorIs(t, err, errBody)
}
