package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Source is the random source of that name under a run's seed. Two names give sources that have nothing to do with each other.
func Source(seed uint64, name string) *rand.Rand {
	a, b := derive(seed, name)
	return rand.New(rand.NewPCG(a, b))
}

// Seed is the seed of that name under a run's seed, for a part that derives further.
func Seed(seed uint64, name string) uint64 {
	a, _ := derive(seed, name)
	return a
}

func derive(seed uint64, name string) (uint64, uint64) {
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], seed)
	sum := sha256.Sum256(append(head[:], name...))
	return binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])
}
