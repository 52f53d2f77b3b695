package vault

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// MinSecretBytes is how long a cluster secret must be after decoding.
const MinSecretBytes = 32

// decodeSecret takes a cluster secret only as hex or padded base64 of at least MinSecretBytes bytes (CRD-12). Text that is
// both is read as hex, on every node alike.
func decodeSecret(text string) ([]byte, bool) {
	if b, err := hex.DecodeString(text); err == nil && len(b) >= MinSecretBytes {
		return b, true
	}
	if strings.ContainsAny(text, "\r\n") {
		return nil, false // the decoder would skip them
	}
	if b, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(b) >= MinSecretBytes {
		return b, true
	}
	return nil, false
}

// wipe overwrites what held a secret.
func wipe(b []byte) { clear(b) }
