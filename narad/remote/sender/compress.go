package sender

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	zstdName   = "zstd"    // Limits.Compression, and the Content-Encoding
	zstdWindow = 256 << 10 // of the compressed data; a target needs as much to read it
	leastSaved = 10        // percent, else the body goes plain (SND-10)
)

// encoders are the zstd encoders of a node. Each works on the goroutine that uses it and costs about a megabyte while bodies are
// being compressed, for all remotes together no more than requests are made ready at once; idle ones are given back to the memory.
type encoders struct{ pool sync.Pool }

func newEncoders() *encoders {
	return &encoders{sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
		if err != nil {
			panic("sender: " + err.Error()) // only options that do not exist together are an error
		}
		return e
	}}}
}

// compress appends body compressed to dst, and tells whether that saves enough to be sent.
func (z *encoders) compress(dst, body []byte) ([]byte, bool) {
	e, _ := z.pool.Get().(*zstd.Encoder) // the pool holds nothing else
	dst = e.EncodeAll(body, dst)
	z.pool.Put(e)
	return dst, len(dst)*100 <= len(body)*(100-leastSaved)
}
