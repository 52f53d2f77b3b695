package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"narad.example/narad/wire"
)

const (
	maxBatchBody = 16 << 20 // decoded or as sent
	freeBody     = 1 << 20  // what a body takes without asking the budget
	pooledBody   = freeBody + 1
	smallBody    = 64 << 10 // not worth a pooled buffer
)

// budget bounds the memory of batch bodies over 1 MiB on this node.
type budget struct {
	limit int64
	used  atomic.Int64
}

// share is one request's part of the budget.
type share struct {
	b    *budget
	held int64
}

var errBudget = wire.Refuse(wire.Unavailable, "too many large batch bodies are being read").After(time.Second)

// grow makes room for a body of total bytes.
func (s *share) grow(total int64) error {
	if total <= pooledBody {
		return nil
	}
	need := total - s.held
	if s.b.used.Add(need) > s.b.limit {
		s.b.used.Add(-need)
		return errBudget
	}
	s.held = total
	return nil
}

func (s *share) giveBack() { s.b.used.Add(-s.held) }

var (
	bodies  = sync.Pool{New: func() any { b := make([]byte, 0, pooledBody); return &b }}
	records = sync.Pool{New: func() any { r := make([]wire.NewRecord, 0, wire.MaxMessages); return &r }}
	gunzips = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

// newUnzstd makes a decoder. Without concurrency it runs no goroutine, so one that the pool drops leaves nothing behind; but it
// holds channels, which must not wander between servers that are simulated apart. The window is what the format recommends that
// every decoder takes.
func newUnzstd() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		panic("api: the zstd decoder's options are wrong")
	}
	return d
}

// batchBody is a batch body in memory, with what has to be given back.
type batchBody struct {
	share  share
	pooled *[]byte
	bytes  []byte
}

// done gives the budget back, and the buffer too when nobody reads it any more.
func (b *batchBody) done(unused bool) {
	b.share.giveBack()
	if unused && b.pooled != nil {
		bodies.Put(b.pooled)
	}
}

// cutReader remembers the error of the connection, so that a body that was cut is not taken for one that does not decode.
type cutReader struct {
	r   io.Reader
	err error
}

func (c *cutReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF { // a Reader returns io.EOF itself
		c.err = err
	}
	return n, err
}

// readBatch reads and decodes the body of a batch produce. done must be called on what it returns, also beside an error.
func readBatch(c *call) (*batchBody, error) {
	b := &batchBody{share: share{b: &c.s.budget}}
	tooLarge := wire.Refuse(wire.TooLarge, "the body is over %d bytes", int64(maxBatchBody))
	raw := &cutReader{r: http.MaxBytesReader(c.ResponseWriter, c.r.Body, maxBatchBody)}
	src, coding, free, err := decoder(c, raw)
	if err != nil {
		return b, err
	}
	defer free()
	sent := c.r.ContentLength
	if sent > maxBatchBody {
		return b, tooLarge
	}
	size := sent + 1 // one more, to see the end without growing
	if coding != "" || sent < 0 {
		size = pooledBody
	}
	if err = b.share.grow(size); err != nil {
		return b, err
	}
	var dst []byte
	if size <= smallBody || size > pooledBody {
		dst = make([]byte, 0, size)
	} else {
		b.pooled = bodies.Get().(*[]byte)
		dst = (*b.pooled)[:0]
	}
	b.bytes, err = fill(dst, src, maxBatchBody, b.share.grow)
	switch {
	case err == nil:
		return b, nil
	case raw.err != nil:
		return b, bodyError(raw.err, tooLarge)
	case coding != "" && !errors.Is(err, errOver) && !errors.Is(err, errBudget):
		return b, wire.Refuse(wire.Invalid, "invalid json: the body does not decode as %s", coding)
	}
	return b, bodyError(err, tooLarge)
}

// decoder undoes the Content-Encoding of the body. free must be called once src is read.
func decoder(c *call, raw io.Reader) (src io.Reader, coding string, free func(), err error) {
	coding = strings.ToLower(strings.TrimSpace(strings.Join(c.r.Header.Values("Content-Encoding"), ",")))
	if coding == "zstd" && c.s.o.Older {
		return nil, "", nil, wire.Refuse(wire.Unsupported, "Content-Encoding must be gzip")
	}
	switch coding {
	case "", "identity":
		return raw, "", func() {}, nil
	case "zstd":
		d := c.s.unzstds.Get().(*zstd.Decoder)
		if err = d.Reset(raw); err != nil {
			return nil, "", nil, err
		}
		return d, coding, func() {
			if d.Reset(nil) == nil {
				c.s.unzstds.Put(d)
			}
		}, nil
	case "gzip":
		z := gunzips.Get().(*gzip.Reader)
		return &lazyGzip{z: z, raw: raw}, coding, func() { gunzips.Put(z) }, nil
	}
	return nil, "", nil, wire.Refuse(wire.Unsupported, "Content-Encoding must be zstd or gzip")
}

// lazyGzip reads the header with the first read, so that an error of it is an error of the body like any other.
type lazyGzip struct {
	z     *gzip.Reader
	raw   io.Reader
	begun bool
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		if err := l.z.Reset(l.raw); err != nil {
			if err == io.EOF { //nolint:errorlint // the empty body is no gzip at all, not the end of one
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
	return l.z.Read(p)
}
