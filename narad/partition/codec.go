package partition

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"narad.example/narad/seglog"
)

const (
	leastPacked = 64 // bytes of a payload that is worth compressing
	leastSaved  = 10 // percent, else a payload is stored as it is
	keepPacked  = 4 << 20
)

// Codec compresses payloads on their way into partitions and reads back what any codec has written. One serves many partitions and
// goroutines. It starts no goroutine.
type Codec struct {
	packs  bool
	zips   sync.Pool // *zstd.Encoder
	unzips sync.Pool // *zstd.Decoder
	boxes  sync.Pool // *packed
}

// NewCodec stores payloads as they are.
func NewCodec() *Codec {
	return &Codec{
		unzips: sync.Pool{New: func() any {
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(seglog.MaxBody))
			if err != nil {
				panic("partition: " + err.Error()) // only options that do not exist together are an error
			}
			return d
		}},
	}
}

// NewZstd compresses payloads by zstd at a level of 1 (fast) to 22 (small).
func NewZstd(level int) *Codec {
	c := NewCodec()
	c.packs = true
	c.zips.New = func() any {
		e, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(1<<20), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false)) // the frame has a checksum
		if err != nil {
			panic("partition: " + err.Error())
		}
		return e
	}
	c.boxes.New = func() any { return new(packed) }
	return c
}

// packed is the payloads of one commit, compressed. Nil is for a commit that is stored as it is.
type packed struct {
	buf      []byte
	payloads [][]byte // by record; nil where compressing saves too little
}

// pack compresses on the goroutine of whoever commits, beside other commits.
func (c *Codec) pack(recs []Record) *packed {
	if !c.packs {
		return nil
	}
	box, _ := c.boxes.Get().(*packed) // the pools hold nothing else
	e, _ := c.zips.Get().(*zstd.Encoder)
	defer c.zips.Put(e)
	for i := range recs {
		plain := recs[i].Payload
		if len(plain) < leastPacked {
			box.payloads = append(box.payloads, nil)
			continue
		}
		at := len(box.buf)
		box.buf = e.EncodeAll(plain, box.buf)
		if (len(box.buf)-at)*100 > len(plain)*(100-leastSaved) {
			box.buf = box.buf[:at]
			box.payloads = append(box.payloads, nil)
			continue
		}
		box.payloads = append(box.payloads, box.buf[at:len(box.buf):len(box.buf)])
	}
	return box
}

func (b *packed) payload(i int) []byte {
	if b == nil {
		return nil
	}
	return b.payloads[i]
}

// free gives back what pack took, once the commit is done.
func (c *Codec) free(b *packed) {
	if b == nil || cap(b.buf) > keepPacked {
		return
	}
	clear(b.payloads)
	b.buf, b.payloads = b.buf[:0], b.payloads[:0]
	c.boxes.Put(b)
}

// unpack returns what was compressed and must be plain bytes long, in the memory of room, which is empty, if it fits there.
func (c *Codec) unpack(room, packed []byte, plain int) ([]byte, error) {
	d, _ := c.unzips.Get().(*zstd.Decoder)
	defer c.unzips.Put(d)
	out, err := d.DecodeAll(packed, room)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	if len(out) != plain {
		return nil, fmt.Errorf("%w: its payload has another length", errRecord)
	}
	return out, nil
}
