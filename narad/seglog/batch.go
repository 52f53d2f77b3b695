package seglog

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"
)

// keepBytes is the largest buffer that goes back into a pool.
const keepBytes = 4 << 20

// Batch is a run of frames that are appended together. It is not for several goroutines at once.
type Batch struct {
	buf   []byte
	count int
	large bool // a body is above MaxBody
	spent bool // an Append has written into the frames
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

// NewBatch takes an empty batch from the pool.
func NewBatch() *Batch { return batches.Get().(*Batch) }

// Grow makes room for frames whose bodies are so many bytes together, so that adding them copies nothing twice.
func (b *Batch) Grow(frames, bytes int) { b.buf = slices.Grow(b.buf, frames*frameBytes+bytes) }

// Add adds one frame whose body is the parts in a row. It copies them.
func (b *Batch) Add(parts ...[]byte) {
	at := len(b.buf)
	b.buf = append(b.buf, make([]byte, frameBytes)...)
	for _, p := range parts {
		b.buf = append(b.buf, p...)
	}
	body := b.buf[at+frameBytes:]
	if len(body) > MaxBody {
		b.large = true
	}
	// The checksum of the body is taken here, by the caller and beside other callers; seal adds the rest of the head.
	binary.LittleEndian.PutUint32(b.buf[at:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(b.buf[at+4:], uint32(len(body)))
	b.count++
}

// Len is how many frames the batch has.
func (b *Batch) Len() int { return b.count }

// Bytes is what the batch takes in the log.
func (b *Batch) Bytes() int { return len(b.buf) }

// Free gives the batch back to the pool. It is not to be used afterwards, nor freed while an Append has it.
func (b *Batch) Free() {
	if cap(b.buf) > keepBytes {
		return
	}
	b.buf, b.count, b.large, b.spent = b.buf[:0], 0, false, false
	batches.Put(b)
}

// renew makes the frames of a batch that an Append has failed with fit for the next one.
func (b *Batch) renew() {
	for at := 0; at < len(b.buf); {
		end := at + frameBytes + int(binary.LittleEndian.Uint32(b.buf[at+4:]))
		binary.LittleEndian.PutUint32(b.buf[at:], crc32.Checksum(b.buf[at+frameBytes:end], castagnoli))
		at = end
	}
	b.spent = false
}

// seal writes sequence numbers into frames that Add made, the first of them seq, and ends their checksums. back is how many
// frames of the group stand before. visit hears where each frame begins.
func seal(buf []byte, seq, back int64, visit func(seq int64, at int)) {
	for at := 0; at < len(buf); seq, back = seq+1, back+1 {
		f := buf[at:]
		visit(seq, at)
		binary.LittleEndian.PutUint64(f[8:], uint64(seq))
		binary.LittleEndian.PutUint32(f[16:], uint32(back))
		sum := crc32.Update(binary.LittleEndian.Uint32(f), castagnoli, f[4:frameBytes])
		binary.LittleEndian.PutUint32(f, sum)
		at += frameBytes + int(binary.LittleEndian.Uint32(f[4:]))
	}
}
