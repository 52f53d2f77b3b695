package queue

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"narad.example/narad/wire"
)

// Handle names a lease: "partition:offset:nonce".
type Handle struct {
	Partition int
	Offset    int64
	Nonce     string // 16 hex
}

func (h Handle) String() string {
	return strconv.Itoa(h.Partition) + ":" + strconv.FormatInt(h.Offset, 10) + ":" + h.Nonce
}

// ParseHandle reads a receipt handle. A text that cannot be one is a Problem of the kind Invalid.
func ParseHandle(text string) (Handle, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Handle{}, errHandle()
	}
	p, err := strconv.ParseUint(parts[0], 10, 31)
	if err != nil {
		return Handle{}, errHandle()
	}
	offset, err := strconv.ParseUint(parts[1], 10, 63)
	if err != nil {
		return Handle{}, errHandle()
	}
	h := Handle{Partition: int(p), Offset: int64(offset), Nonce: parts[2]}
	if nonce, err := hex.DecodeString(h.Nonce); err != nil || len(nonce) != nonceBytes || h.String() != text {
		return Handle{}, errHandle()
	}
	return h, nil
}

const nonceBytes = 8

func newNonce() string {
	var b [nonceBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func errHandle() error { return wire.Refuse(wire.Invalid, "receipt_handle is not valid") }

func errGone() error {
	return wire.Refuse(wire.Gone, "the lease is gone: it was acknowledged, given back or has run out")
}
