package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// The floor's requests have the sender's bounds (SND-03, SND-05).
const (
	floorRecords = 1000
	floorBytes   = 960 << 10
)

// FloorSource drains one file of framed records per lane to a floor target and returns how long it took.
func FloorSource(ctx context.Context, dir, address string, roots *x509.CertPool, k FloorKind) (time.Duration, error) {
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range k.Lanes {
		g.Go(func() error {
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, WriteBufferSize: 64 << 10,
			}}
			defer client.CloseIdleConnections()
			p := poster{client: client, url: fmt.Sprintf("https://%s/produce?lane=%d", address, i), records: k.Records}
			if k.Zstd {
				var err error
				if p.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
					return err
				}
			}
			return p.drain(ctx, sourceFile(dir, k.Lanes, i), filepath.Join(dir, fmt.Sprintf("floor-cursor-%d", i)))
		})
	}
	err := g.Wait()
	return time.Since(start), err
}

func sourceFile(dir string, lanes, i int) string {
	return filepath.Join(dir, fmt.Sprintf("floor-source-%d-%d.log", lanes, i))
}

// poster sends one lane's bodies.
type poster struct {
	client  *http.Client
	url     string
	records int           // of a body, at most
	zstd    *zstd.Encoder // nil sends bodies as they are
	packed  []byte
}

func (p *poster) drain(ctx context.Context, source, cursor string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	offsets, err := os.Create(cursor)
	if err != nil {
		return err
	}
	defer func() { _ = offsets.Close() }()
	r := &frameReader{r: bufio.NewReaderSize(in, 256<<10)}
	var body []byte
	sent := int64(0)
	for {
		var n int
		body, n, err = r.fill(body[:0], p.records)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := p.post(ctx, body); err != nil {
			return err
		}
		sent += int64(n)
		var at [8]byte
		binary.LittleEndian.PutUint64(at[:], uint64(sent))
		if _, err := offsets.WriteAt(at[:], 0); err != nil {
			return err
		}
	}
}

func (p *poster) post(ctx context.Context, body []byte) error {
	if p.zstd != nil {
		p.packed = p.zstd.EncodeAll(body, p.packed[:0])
		body = p.packed
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.zstd != nil {
		req.Header.Set("Content-Encoding", codecZstd)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("floor: status %d", res.StatusCode)
	}
	return nil
}

// frameReader reads frames and carries one over when a body is full.
type frameReader struct {
	r    *bufio.Reader
	held []byte
	key  int
	have bool
}

// fill appends a body of at most that many records and floorBytes bytes; n is 0 at the end.
func (f *frameReader) fill(body []byte, most int) (out []byte, n int, err error) {
	body = append(body, bodyOpen...)
	for n < most {
		if !f.have {
			if err := f.next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return body, n, err
			}
		}
		if n > 0 && len(body)+len(f.held)+64 > floorBytes {
			break
		}
		body = appendRecord(body, record{f.held[:f.key], f.held[f.key:]})
		f.have = false
		n++
	}
	return append(body, bodyClose...), n, nil
}

func (f *frameReader) next() error {
	var head [8]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return err
	}
	f.key = int(binary.LittleEndian.Uint32(head[:]))
	size := f.key + int(binary.LittleEndian.Uint32(head[4:]))
	if cap(f.held) < size {
		f.held = make([]byte, size)
	}
	f.held = f.held[:size]
	_, err := io.ReadFull(f.r, f.held)
	f.have = err == nil
	return err
}
