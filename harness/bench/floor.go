package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The hidden subcommands of the harness's binary that are the floor's two ends.
const (
	FloorTargetName = "bench-floor-target"
	FloorSourceName = "bench-floor-source"
)

// FloorTargetCommand is the subcommand FloorTargetName: args are folder, certificate file, key file, lanes. It prints the
// address and serves until ctx ends.
func FloorTargetCommand(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("%s: 4 arguments: folder, certificate, key, lanes", FloorTargetName)
	}
	cert, err := tls.LoadX509KeyPair(args[1], args[2])
	if err != nil {
		return fmt.Errorf("%s: %w", FloorTargetName, err)
	}
	lanes, err := strconv.Atoi(args[3])
	if err != nil {
		return fmt.Errorf("%s: lanes: %w", FloorTargetName, err)
	}
	return FloorTarget(ctx, out, args[0], cert, lanes)
}

// FloorSourceCommand is the subcommand FloorSourceName: args are folder, address, CA file, lanes, records of a request, and
// codecZstd or codecNone. It drains the folder's files and prints the nanoseconds that it took.
func FloorSourceCommand(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 6 {
		return fmt.Errorf("%s: 6 arguments: folder, address, CA, lanes, records of a request, codec", FloorSourceName)
	}
	pem, err := os.ReadFile(args[2])
	if err != nil {
		return fmt.Errorf("%s: %w", FloorSourceName, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: %s holds no certificate", FloorSourceName, args[2])
	}
	lanes, err := strconv.Atoi(args[3])
	if err != nil {
		return fmt.Errorf("%s: lanes: %w", FloorSourceName, err)
	}
	records, err := strconv.Atoi(args[4])
	if err != nil {
		return fmt.Errorf("%s: records of a request: %w", FloorSourceName, err)
	}
	took, err := FloorSource(ctx, args[0], args[1], roots, FloorKind{Lanes: lanes, Records: records, Zstd: args[5] == codecZstd})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, took.Nanoseconds())
	return err
}

// copied is what a copy of records took: time, and CPU of both ends; or what producing them took, and the node's CPU.
type copied struct {
	took, cpu time.Duration
	records   int
	warm      int // records that were produced before the clock ran

	allocations float64 // of the source of a drain, objects
}

func (c copied) rate() float64 { return float64(c.records) / c.took.Seconds() }

// micros is the CPU in microseconds per record.
func (c copied) micros() float64 {
	return float64(c.cpu) / float64(time.Microsecond) / float64(c.records)
}

// FloorKind is one shape of the floor.
type FloorKind struct {
	Lanes   int
	Records int  // of a request, at most
	Zstd    bool // bodies are compressed
	far     bool // a round trip of farRoundTrip stands between
}

// plainFloor has the sender's own bounds (SND-03).
func plainFloor(lanes int) FloorKind { return FloorKind{Lanes: lanes, Records: floorRecords} }

const (
	codecNone    = "none"
	codecZstd    = "zstd"
	farRoundTrip = 50 * time.Millisecond
)

// floor copies all records once between two processes of the floor. The target's files of the run before are overwritten.
func (s *stand) floor(ctx context.Context, k FloorKind) (copied, error) {
	if err := s.floorFiles(k.Lanes); err != nil {
		return copied{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return copied{}, err
	}
	defer func() { _ = r.Close() }()
	n := strconv.Itoa(k.Lanes)
	target, err := s.spawn.launch("floor target", s.path("floor-target.txt"), childEnv(),
		[]string{s.o.Chaos, FloorTargetName, s.dir, s.path(certName), s.path(keyName), n}, w)
	_ = w.Close()
	if err != nil {
		return copied{}, err
	}
	defer target.kill()
	stop := context.AfterFunc(ctx, target.kill)
	defer stop()
	address, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return copied{}, fmt.Errorf("floor target did not start: %w: %s", errors.Join(ctx.Err(), err), target.tail())
	}
	codec := codecNone
	address = strings.TrimSpace(address)
	if k.Zstd {
		codec = codecZstd
	}
	if k.far {
		line, errLine := newDelayLine(net.JoinHostPort(host, "0"), address, farRoundTrip)
		if errLine != nil {
			return copied{}, errLine
		}
		defer line.close()
		address = line.addr
	}
	before, err := target.cpu()
	if err != nil {
		return copied{}, err
	}
	text, cpu, err := s.spawn.output(ctx, "floor source", s.path("floor-source.txt"),
		[]string{s.o.Chaos, FloorSourceName, s.dir, address, s.path(caName), n, strconv.Itoa(k.Records), codec})
	if err != nil {
		return copied{}, err
	}
	after, err := target.cpu()
	if err != nil {
		return copied{}, err
	}
	took, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return copied{}, fmt.Errorf("floor source printed %q: %w", text, err)
	}
	return copied{took: time.Duration(took), cpu: cpu + after - before, records: s.o.Records}, nil
}

// floorFiles writes the floor's records once for each number of lanes.
func (s *stand) floorFiles(lanes int) error {
	for i := range lanes {
		name := sourceFile(s.dir, lanes, i)
		if _, err := os.Stat(name); err == nil {
			continue
		}
		part := s.o.Records / lanes
		if i == 0 {
			part += s.o.Records % lanes
		}
		if err := writeFile(name, part); err != nil {
			return fmt.Errorf("records of the floor: %w", err)
		}
	}
	return nil
}

func writeFile(name string, records int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(writeFrames(w, records), w.Flush(), f.Close())
}

func (s *stand) path(name string) string { return filepath.Join(s.dir, name) }
