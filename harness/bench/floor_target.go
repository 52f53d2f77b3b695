package bench

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// FloorTarget serves the floor's target until ctx ends: one file a lane in dir, one fdatasync a request. It prints its
// address as one line on out once it listens. Cert and key are PEM.
func FloorTarget(ctx context.Context, out io.Writer, dir string, cert tls.Certificate, lanes int) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("floor target: %w", err)
	}
	files := make([]*lane, lanes)
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("floor-target-%d.log", i)))
		if err != nil {
			return fmt.Errorf("floor target: %w", err)
		}
		defer func() { _ = f.Close() }()
		unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return fmt.Errorf("floor target: %w", err)
		}
		files[i] = &lane{file: f, unpack: unpack}
	}
	server := &http.Server{
		Handler:   floorHandler(files),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("floor target: %w", err)
	}
	return nil
}

// lane is one lane's file and the buffers that only its one request at a time uses.
type lane struct {
	file      *os.File
	body, out []byte
	unpack    *zstd.Decoder
	unpacked  []byte
	records   []record
}

func floorHandler(lanes []*lane) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.URL.Query().Get("lane"))
		if err != nil || i < 0 || i >= len(lanes) || r.ContentLength < 0 {
			http.Error(w, "no such lane", http.StatusBadRequest)
			return
		}
		n, err := lanes[i].take(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"accepted":%d}`, n)
	})
}

// take reads, checks, appends and syncs one body.
func (l *lane) take(r *http.Request) (int, error) {
	if int64(cap(l.body)) < r.ContentLength {
		l.body = make([]byte, r.ContentLength)
	}
	l.body = l.body[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, l.body); err != nil {
		return 0, err
	}
	body := l.body
	if r.Header.Get("Content-Encoding") == codecZstd {
		var err error
		if l.unpacked, err = l.unpack.DecodeAll(body, l.unpacked[:0]); err != nil {
			return 0, err
		}
		body = l.unpacked
	}
	records, err := floorParse(body, l.records[:0])
	l.records = records
	if err != nil {
		return 0, err
	}
	l.out = l.out[:0]
	for _, rec := range records {
		l.out = binary.LittleEndian.AppendUint32(l.out, uint32(len(rec.key)))
		l.out = binary.LittleEndian.AppendUint32(l.out, uint32(len(rec.payload)))
		l.out = append(append(l.out, rec.key...), rec.payload...)
	}
	if _, err := l.file.Write(l.out); err != nil {
		return 0, err
	}
	return len(records), datasync(l.file)
}
