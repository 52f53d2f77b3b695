package partition

import (
	"encoding/binary"
	"errors"
	"hash/fnv"

	"narad.example/narad/seglog"
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

// The body of a frame: one byte of flags, the commit time in 8 bytes, with flagKey the key's length in 4 bytes, with flagZstd the
// payload's plain length in 4 bytes, then the key, then to the end the payload, with flagZstd as one zstd frame. Numbers are little
// endian. Each record says for itself how it is stored, so that a log may hold both.
const (
	flagKey   = 1
	flagZstd  = 2
	headBytes = 9
	lenBytes  = 4
)

// errRecord says that a frame with a good checksum holds no record, which only another kind of log in the same place explains.
var errRecord = errors.New("the frame holds no record")

// appendHead appends all of a record's body but key and payload. plain is the length of a payload that is compressed, else 0.
func appendHead(dst []byte, commitMS int64, key []byte, plain int) []byte {
	var flags byte
	if len(key) > 0 {
		flags = flagKey
	}
	if plain > 0 {
		flags |= flagZstd
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(commitMS))
	if flags&flagKey != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(key)))
	}
	if plain > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(plain))
	}
	return dst
}

// decode reads a body. Key and Payload point into it. plain is the length that the payload has once it is uncompressed, 0 for one
// that is not compressed.
func decode(offset int64, body []byte) (r Record, plain int, err error) {
	if len(body) < headBytes || body[0]&^(flagKey|flagZstd) != 0 {
		return Record{}, 0, errRecord
	}
	r = Record{Offset: offset, CommitMS: int64(binary.LittleEndian.Uint64(body[1:]))}
	rest := body[headBytes:]
	var lens [2]int64 // of the key, of the plain payload
	for i, flag := range [...]byte{flagKey, flagZstd} {
		if body[0]&flag == 0 {
			continue
		}
		if len(rest) < lenBytes {
			return Record{}, 0, errRecord
		}
		lens[i], rest = int64(binary.LittleEndian.Uint32(rest)), rest[lenBytes:]
	}
	keyLen, packed := lens[0], body[0]&flagZstd != 0
	if keyLen > int64(len(rest)) || packed && (lens[1] == 0 || lens[1] > seglog.MaxBody) {
		return Record{}, 0, errRecord
	}
	if body[0]&flagKey != 0 {
		r.Key, rest = rest[:keyLen:keyLen], rest[keyLen:]
	}
	r.Payload = rest[:len(rest):len(rest)]
	return r, int(lens[1]), nil
}

// weigh is what a frame's body counts in a reader's bound: with its payload as the reader gets it.
func weigh(body []byte) int {
	r, plain, err := decode(0, body)
	if err != nil || plain == 0 {
		return len(body)
	}
	return len(body) - len(r.Payload) + plain
}
