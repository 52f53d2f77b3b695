package partition

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
)

// Record is one record of a partition. Key nil is none. CommitMS is the time of its commit, in Unix milliseconds.
type Record struct {
	Offset   int64
	Key      []byte
	Payload  []byte
	CommitMS int64
}

// ForKey is the partition of a key: FNV-1a, 32 bits, over the partition count, which must be above 0.
func ForKey(key []byte, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write(key) // a hash never fails to write
	return int(h.Sum32() % uint32(partitions))
}

// The body of a frame: one byte of flags, the commit time in 8 bytes, with flagKey the key's length in 4 bytes and the
// key, then the payload to the end. Numbers are little endian.
const (
	flagKey     = 1
	headBytes   = 9
	keyLenBytes = 4
)

// errRecord says that a frame with a good checksum holds no record, which only another kind of log in the same place explains.
var errRecord = errors.New("the frame holds no record")

// appendHead appends all of a record's body but key and payload.
func appendHead(dst []byte, commitMS int64, key []byte) []byte {
	var flags byte
	if len(key) > 0 {
		flags = flagKey
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(commitMS))
	if flags&flagKey != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(key)))
	}
	return dst
}

// decode reads a body. Key and Payload point into it.
func decode(offset int64, body []byte) (Record, error) {
	if len(body) < headBytes || body[0]&^flagKey != 0 {
		return Record{}, errRecord
	}
	r := Record{Offset: offset, CommitMS: int64(binary.LittleEndian.Uint64(body[1:]))}
	rest := body[headBytes:]
	if body[0]&flagKey != 0 {
		if len(rest) < keyLenBytes {
			return Record{}, errRecord
		}
		n := int64(binary.LittleEndian.Uint32(rest))
		rest = rest[keyLenBytes:]
		if n > int64(len(rest)) {
			return Record{}, errRecord
		}
		r.Key, rest = rest[:n:n], rest[n:]
	}
	r.Payload = rest[:len(rest):len(rest)]
	return r, nil
}
