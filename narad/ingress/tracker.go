package ingress

import "math/bits"

// tracker knows which sequence numbers from the checkpoint on are done, one bit each. Its owner's mutex guards it.
type tracker struct {
	base  int64    // sequence of bit 0 of words[0], a multiple of 64
	words []uint64 // set = done; from base on
}

func newTracker(first int64) tracker {
	t := tracker{base: first &^ 63}
	t.words = append(t.words, 1<<(uint64(first)&63)-1)
	return t
}

// done marks one sequence number. Marking one below the checkpoint changes nothing.
func (t *tracker) done(seq int64) {
	if seq < t.base {
		return
	}
	i := int((seq - t.base) >> 6)
	for len(t.words) <= i {
		t.words = append(t.words, 0)
	}
	t.words[i] |= 1 << (uint64(seq) & 63)
}

// checkpoint is the first sequence number that is not done. It forgets the words below it.
func (t *tracker) checkpoint() int64 {
	n := 0
	for n < len(t.words) && t.words[n] == ^uint64(0) {
		n++
	}
	if n > 0 {
		t.base += int64(n) << 6
		t.words = t.words[:copy(t.words, t.words[n:])]
	}
	if len(t.words) == 0 {
		return t.base
	}
	return t.base + int64(bits.TrailingZeros64(^t.words[0]))
}
