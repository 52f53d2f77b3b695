package meta

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID makes an ID of a topic, an attach epoch or a remote: 16 hex characters from crypto/rand.
func NewID() string {
	var b [8]byte
	// crypto/rand.Read never fails: it ends the process when the system has no randomness.
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
