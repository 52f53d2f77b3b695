package ingress

import (
	"encoding/binary"
	"errors"
)

// The body of a frame of the write-ahead log, numbers as uvarints:
//
//	version (1 byte), flags (1 byte), accept time in ms, length and bytes of the topic's name, of its ID, partition,
//	length and bytes of the key when flagKeyed, payload (the rest)
//
// The checksum is the log's.
const (
	recordVersion = 1

	flagKeyed  = 1 << 0
	flagPinned = 1 << 1 // the client named the partition
)

var errRecord = errors.New("ingress: a frame of the write-ahead log is no record")

// record is one decoded frame. All slices point into the frame.
type record struct {
	topic, topicID []byte
	partition      int
	flags          byte
	acceptMS       int64
	key, payload   []byte
}

// appendHead appends everything before the key's bytes.
func appendHead(dst []byte, flags byte, acceptMS int64, topic, topicID string, partition, keyLen int) []byte {
	dst = append(dst, recordVersion, flags)
	dst = binary.AppendUvarint(dst, uint64(acceptMS))
	dst = binary.AppendUvarint(dst, uint64(len(topic)))
	dst = append(dst, topic...)
	dst = binary.AppendUvarint(dst, uint64(len(topicID)))
	dst = append(dst, topicID...)
	dst = binary.AppendUvarint(dst, uint64(partition))
	if flags&flagKeyed != 0 {
		dst = binary.AppendUvarint(dst, uint64(keyLen))
	}
	return dst
}

// decode reads a frame without allocating.
func decode(body []byte) (r record, err error) {
	c := cutter{rest: body}
	if c.byte() != recordVersion {
		return record{}, errRecord
	}
	r.flags = c.byte()
	r.acceptMS = int64(c.number())
	r.topic = c.bytes(c.number())
	r.topicID = c.bytes(c.number())
	p := c.number()
	if r.flags&flagKeyed != 0 {
		r.key = c.bytes(c.number())
	}
	r.payload = c.rest
	if c.bad || p > 1<<20 {
		return record{}, errRecord
	}
	r.partition = int(p)
	return r, nil
}

// cutter takes pieces off the front of a frame; bad is set once one is missing.
type cutter struct {
	rest []byte
	bad  bool
}

func (c *cutter) byte() byte {
	b := c.bytes(1)
	if c.bad {
		return 0
	}
	return b[0]
}

func (c *cutter) number() uint64 {
	n, used := binary.Uvarint(c.rest)
	if used <= 0 {
		c.bad, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[used:]
	return n
}

func (c *cutter) bytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}
