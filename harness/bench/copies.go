package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// wireChunk is what a copy over TLS reads, sends and writes at once, in bytes.
const wireChunk = 256 << 10

// warmCopies is how many copies of the same files warm makes.
const warmCopies = 3

// warm makes copies of a folder and deletes them, so that the page cache that is measured next lies in memory that this machine has used before: a
// virtual one that has to get each page from its host first takes ten times as long to fill it.
func warm(ctx context.Context, from, to string) error {
	var errs error
	for i := range warmCopies {
		_, err := copyFiles(ctx, from, filepath.Join(to, fmt.Sprint(i)))
		errs = errors.Join(errs, err)
	}
	return errors.Join(errs, os.RemoveAll(to))
}

// copyFiles copies a folder file by file, each synced; records stand for bytes.
func copyFiles(ctx context.Context, from, to string) (c copied, err error) {
	start := time.Now()
	err = filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a log that the node needs no longer
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, rel), 0o755))
		}
		n, err := copyFile(path, filepath.Join(to, rel))
		c.records += n
		return err
	})
	c.took = time.Since(start)
	return c, err
}

func copyFile(from, to string) (int, error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, in)
	return int(n), errors.Join(err, out.Sync(), out.Close())
}

// dayScenario is PRF-14's, from the module's folder.
const dayScenario = "scenarios/cluster/day.yaml"

// day is the real minutes that a virtual day of two clusters of three nodes under faults takes. Its verdict must be pass.
func (s *stand) day(ctx context.Context) (float64, error) {
	if _, err := os.Stat(dayScenario); err != nil {
		return 0, fmt.Errorf("the scenario of a day, which is looked for from the project's root: %w", err)
	}
	start := time.Now()
	_, _, err := s.spawn.output(ctx, "day", s.path("day.log"),
		[]string{s.o.Chaos, "run", "--backend", "sim", "--out", s.path("day"), dayScenario})
	return time.Since(start).Minutes(), err
}

// copyOverTLS sends a node's folder through one connection of TLS 1.3 on loopback, file by file, and has the other end write each and sync it. Records
// stand for bytes.
func (s *stand) copyOverTLS(ctx context.Context, from, to string) (c copied, err error) {
	near, far, err := s.wire(ctx)
	if err != nil {
		return c, err
	}
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return errors.Join(sendFolder(ctx, near, from), near.Close()) })
	group.Go(func() (err error) {
		c.records, err = receiveFolder(far, to)
		return errors.Join(err, far.Close())
	})
	err = group.Wait()
	c.took = time.Since(start)
	return c, errors.Join(err, os.RemoveAll(to))
}

// wire is both ends of a connection that has shaken hands.
func (s *stand) wire(ctx context.Context) (near, far *tls.Conn, err error) {
	cert, err := tls.LoadX509KeyPair(s.path(certName), s.path(keyName))
	if err != nil {
		return nil, nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		raw, err := l.Accept()
		if err != nil {
			return err
		}
		far = tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
		return far.HandshakeContext(ctx)
	})
	group.Go(func() error {
		d := &tls.Dialer{Config: &tls.Config{RootCAs: s.tr.TLSClientConfig.RootCAs, ServerName: host, MinVersion: tls.VersionTLS13}}
		raw, err := d.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return errors.Join(err, l.Close())
		}
		near, _ = raw.(*tls.Conn) // what a tls.Dialer makes
		return nil
	})
	return near, far, group.Wait()
}

// sendFolder sends each file as its length in 8 bytes and its bytes.
func sendFolder(ctx context.Context, to io.Writer, from string) error {
	buf := make([]byte, wireChunk)
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		in, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		if _, err = to.Write(binary.LittleEndian.AppendUint64(nil, uint64(info.Size()))); err != nil {
			return err
		}
		n, err := io.CopyBuffer(to, io.LimitReader(in, info.Size()), buf)
		if err == nil && n < info.Size() {
			err = fmt.Errorf("%s became shorter while it was sent", path)
		}
		return err
	})
}

// receiveFolder writes what sendFolder sends, under numbers for names, and returns the bytes.
func receiveFolder(from io.Reader, to string) (sum int, err error) {
	if err = os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	in, buf := bufio.NewReaderSize(from, wireChunk), make([]byte, wireChunk)
	for i := 0; ; i++ {
		var head [8]byte
		if _, err = io.ReadFull(in, head[:]); errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		out, err := os.Create(filepath.Join(to, fmt.Sprint(i)))
		if err != nil {
			return sum, err
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{out}, io.LimitReader(in, int64(binary.LittleEndian.Uint64(head[:]))), buf)
		sum += int(n)
		if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
			return sum, err
		}
	}
}
