package ingress

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")
		payload := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "payload")
		topic, id := rapid.String().Draw(t, "topic"), rapid.StringMatching("[0-9a-f]{16}").Draw(t, "id")
		p := rapid.IntRange(0, 107).Draw(t, "partition")
		at := rapid.Int64Range(0, 1<<50).Draw(t, "at")
		flags := byte(0)
		if len(key) > 0 {
			flags |= flagKeyed
		}
		if rapid.Bool().Draw(t, "pinned") {
			flags |= flagPinned
		}
		body := appendHead(nil, flags, at, topic, id, p, len(key))
		body = append(append(body, key...), payload...)
		r, err := decode(body)
		require.NoError(t, err)
		require.Equal(t, topic, string(r.topic))
		require.Equal(t, id, string(r.topicID))
		require.Equal(t, p, r.partition)
		require.Equal(t, at, r.acceptMS)
		require.Equal(t, flags, r.flags)
		require.True(t, slices.Equal(key, r.key))
		require.Equal(t, payload, r.payload)
		require.Equal(t, len(key) == 0, r.key == nil)
	})
}

func TestDecodeAllocatesNothing(t *testing.T) {
	body := append(appendHead(nil, flagKeyed, 1, "orders", "aaaaaaaaaaaaaaaa", 3, 3), "keypayload"...)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := decode(body); err != nil {
			panic(err)
		}
	}))
}

func FuzzDecode(f *testing.F) {
	f.Add(append(appendHead(nil, flagKeyed, 1, "orders", "aaaaaaaaaaaaaaaa", 3, 3), "keypayload"...))
	f.Add([]byte{recordVersion, 0, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decode(body)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(r.topic)+len(r.topicID)+len(r.key)+len(r.payload), len(body))
	})
}

func TestTrackerIsTheFirstNotDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 300).Draw(t, "first")
		tr := newTracker(first)
		done := map[int64]bool{}
		want := first
		for _, n := range rapid.SliceOf(rapid.Int64Range(0, 400)).Draw(t, "seqs") {
			tr.done(first + n)
			done[first+n] = true
			for done[want] {
				want++
			}
			require.Equal(t, want, tr.checkpoint())
		}
	})
}
