package seglog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
)

// keepBytes is the largest buffer that goes back into a pool.
const keepBytes = 4 << 20

// Batch is a run of frames that are appended together. The zero value is empty. It is not for several goroutines at once.
type Batch struct {
	buf   []byte
	own   []byte // the batch's memory while buf is somebody else's
	count int
	large bool // a body is above MaxBody
	spent bool // an Append has written into the frames
	lent  bool // buf is the memory of whoever called Adopt
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

// NewBatch takes an empty batch from the pool.
func NewBatch() *Batch { return batches.Get().(*Batch) }

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

// Adopt adds frames as a log holds them (Buffer.Run), of which the first must carry the sequence number first. Each checksum is verified, and visit
// hears each body; its error, like a frame that is not good, ends it, and then nothing was added. An empty batch takes the memory as it is, for
// Append to write into, so that nobody else may use frames before the batch is freed; nor after an error, which leaves it half changed.
func (b *Batch) Adopt(frames []byte, first int64, visit func(body []byte) error) error {
	count := 0
	for at := 0; at < len(frames); count++ {
		body, sum, size, err := parseSummed(frames[at:], first+int64(count))
		if err == nil {
			err = visit(body)
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w", first+int64(count), err)
		}
		binary.LittleEndian.PutUint32(frames[at:], sum) // as Add leaves it
		at += size
	}
	b.take(frames, count)
	return nil
}

// Join adds what other holds, which may not be used before b is freed.
func (b *Batch) Join(other *Batch) {
	if other.spent {
		other.renew()
	}
	b.large = b.large || other.large
	b.take(other.buf, other.count)
	other.spent = true // an Append of b writes into what it was lent
}

// take adds count frames, which are copied only where others stand before them.
func (b *Batch) take(frames []byte, count int) {
	if b.spent {
		b.renew()
	}
	if b.count += count; len(b.buf) > 0 {
		b.buf = append(b.buf, frames...)
		return
	}
	if !b.lent {
		b.own, b.lent = b.buf, true
	}
	b.buf = frames[:len(frames):len(frames)]
}

// Len is how many frames the batch has.
func (b *Batch) Len() int { return b.count }

// Bytes is what the batch takes in the log.
func (b *Batch) Bytes() int { return len(b.buf) }

// Free gives the batch back to the pool. It is not to be used afterwards, nor freed while an Append has it.
func (b *Batch) Free() {
	buf := b.buf
	if b.lent {
		buf = b.own
	}
	if cap(buf) > keepBytes {
		return
	}
	*b = Batch{buf: buf[:0]}
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

// seal writes sequence numbers into the frames of a group, which Add or Adopt made, the first of them seq, and ends their checksums. visit hears where each
// frame begins.
func seal(buf []byte, seq int64, visit func(seq int64, at int)) {
	for at, back := 0, 0; at < len(buf); seq, back = seq+1, back+1 {
		f := buf[at:]
		visit(seq, at)
		binary.LittleEndian.PutUint64(f[8:], uint64(seq))
		binary.LittleEndian.PutUint32(f[16:], uint32(back))
		binary.LittleEndian.PutUint32(f, whole(binary.LittleEndian.Uint32(f), f))
		at += frameBytes + int(binary.LittleEndian.Uint32(f[4:]))
	}
}
