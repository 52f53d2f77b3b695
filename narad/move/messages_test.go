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
	head, err := headOf(want, 3)
	require.NoError(t, err)
	answer := append(head, "one two three"...)
	b, run, err := decodeRead(answer, 9)
	require.NoError(t, err)
	require.Equal(t, want, b)
	require.Equal(t, "one two three", string(run.Frames))
	require.EqualValues(t, 9, run.First)
	require.EqualValues(t, 12, run.Next())
	for n := range len(head) + 1 {
		_, run, err = decodeRead(answer[:n:n], 9)
		require.ErrorIs(t, err, errBody, n)
		require.Empty(t, run.Frames)
	}
	answer[3] = 0xff // the length of the head
	_, _, err = decodeRead(answer, 9)
	require.ErrorIs(t, err, errBody)

	none, err := headOf(want, 0)
	require.NoError(t, err)
	_, run, err = decodeRead(none, 9)
	require.NoError(t, err)
	require.EqualValues(t, 9, run.Next())
	_, _, err = decodeRead(append(none, 'x'), 9)
	require.ErrorIs(t, err, errBody, "bytes that no record accounts for")
}
