package meta

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSkipList merges any skips into a list that is full, nearly full or empty, and compares it with a plain set (WRT-10).
//
// covers: WRT-10
func FuzzSkipList(f *testing.F) {
	f.Add(uint16(0), []byte{0, 0, 1, 0, 0, 1, 1, 0, 0})
	f.Add(uint16(MaxSkips), []byte{0, 0, 0, 0, 255, 255, 0, 0, 7})
	f.Add(uint16(MaxSkips-1), []byte{0, 0, 3, 0, 0, 1, 2, 0, 1})
	f.Fuzz(func(t *testing.T, full uint16, ops []byte) {
		var list map[int][]int64
		model := map[int][]int64{}
		if n := min(int(full), MaxSkips); n > 0 {
			list = map[int][]int64{0: make([]int64, n)}
			for i := range n {
				list[0][i] = int64(3*i + 2)
			}
			model[0] = slices.Clone(list[0])
		}
		for ops = ops[:min(len(ops), 3*64)]; len(ops) >= 3; ops = ops[3:] {
			one := SkipOne{Partition: int(ops[0] % 3), Offset: int64(binary.BigEndian.Uint16(ops[1:]))}
			before := slices.Clone(list[one.Partition])
			next := skipped(list, one)
			require.True(t, slices.Equal(before, list[one.Partition]), "a list in use never changes")
			list = next
			model[one.Partition] = modelSkip(model[one.Partition], one.Offset)
			link := RemoteLink{Skip: list}
			require.True(t, link.Skips(one.Partition, one.Offset), "the new one always stays")
			require.False(t, link.Skips(one.Partition, one.Offset+1) && !slices.Contains(model[one.Partition], one.Offset+1))
		}
		b, err := json.Marshal(RemoteLink{Skip: list})
		require.NoError(t, err)
		var again RemoteLink
		require.NoError(t, json.Unmarshal(b, &again))
		for p := range 3 {
			require.LessOrEqual(t, len(list[p]), MaxSkips)
			require.Equal(t, model[p], list[p])
			require.Equal(t, list[p], again.Skip[p])
		}
	})
}

// modelSkip adds an offset to a set and, over the limit, takes the lowest other one out.
func modelSkip(set []int64, offset int64) []int64 {
	if slices.Contains(set, offset) {
		return set
	}
	if len(set) == MaxSkips {
		low := slices.Min(set)
		set = slices.DeleteFunc(slices.Clone(set), func(o int64) bool { return o == low })
	}
	set = append(slices.Clone(set), offset)
	slices.Sort(set)
	return set
}
