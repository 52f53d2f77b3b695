package sim

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// SeededSecrets derives secrets from a seed by name, so that a replay has the same ones. They guard nothing: the cluster
// lives in this process.
func SeededSecrets(seed uint64) func(name string) []byte {
	return func(name string) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "narad simulation %d %s", seed, name))
		return sum[:]
	}
}

func encode(b []byte) string       { return base64.RawURLEncoding.EncodeToString(b) }
func encodePadded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
