package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"narad.example/narad/wire"
)

const (
	singleClients = 64
	batchClients  = 4
	batchRecords  = 500
	produceFor    = 3 * time.Second
	warmFor       = 500 * time.Millisecond
)

// load is one way to produce: each client sends its requests round and round over one connection, one at a time. Requests
// are built before the clock runs, since the machine is shared with the load.
type load struct {
	topic            string
	clients, records int // records of one request
	request          func(i int) []byte
}

// single is 1 KiB keyed records, one a request.
func (s *stand) single(n *node, topic string) load {
	return load{topic: topic, clients: singleClients, records: 1, request: func(i int) []byte {
		return s.post(n, "/v1/topics/"+topic+"/produce?key="+key(i), payload(nil, i))
	}}
}

// batches is the same records, batchRecords a request.
func (s *stand) batches(n *node, topic string) load {
	return load{topic: topic, clients: batchClients, records: batchRecords, request: func(i int) []byte {
		return s.post(n, "/v1/topics/"+topic+"/produce/batch", batchBody(i*batchRecords, batchRecords, -1))
	}}
}

// post is a whole request as bytes.
func (s *stand) post(n *node, path string, body []byte) []byte {
	auth := base64.StdEncoding.EncodeToString([]byte(adminUser + ":" + s.password))
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		path, n.addr, auth, len(body))
	return append([]byte(head), body...)
}

// produce runs a load for a bounded time, after a short one that is not counted, and returns what was acknowledged and the
// CPU time of the node.
func (s *stand) produce(ctx context.Context, n *node, l load) (copied, error) {
	warm, err := s.run(ctx, n, l, warmFor)
	if err != nil {
		return copied{}, err
	}
	profiled := s.profile(ctx, fmt.Sprintf("produce-%d-clients-%s", l.clients, l.topic), n)
	defer profiled()
	c, err := s.run(ctx, n, l, produceFor)
	c.warm = warm.records
	return c, err
}

func (s *stand) run(ctx context.Context, n *node, l load, limit time.Duration) (copied, error) {
	requests := make([][][]byte, l.clients)
	for c := range requests {
		for k := range 8 {
			requests[c] = append(requests[c], l.request(c*8+k))
		}
	}
	var done atomic.Int64
	before, err := n.cpu()
	if err != nil {
		return copied{}, err
	}
	start := time.Now()
	end := start.Add(limit)
	g, ctx := errgroup.WithContext(ctx)
	for _, mine := range requests {
		g.Go(func() error { return produceClient(ctx, n.addr, mine, end, &done) })
	}
	if err = g.Wait(); err != nil {
		return copied{}, fmt.Errorf("produce: %w", err)
	}
	took := time.Since(start)
	after, err := n.cpu()
	return copied{took: took, cpu: after - before, records: int(done.Load()) * l.records}, err
}

// produceClient sends requests until end and counts the answers, each of which must be a 202.
func produceClient(ctx context.Context, addr string, requests [][]byte, end time.Time, done *atomic.Int64) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.close()
	for i := 0; time.Now().Before(end); i++ {
		if err := conn.post(requests[i%len(requests)]); err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}

// line is one client's connection, which ends with its context.
type line struct {
	conn net.Conn
	r    *bufio.Reader
	stop func() bool
}

func dial(ctx context.Context, addr string) (*line, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn), context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

func (l *line) close() {
	l.stop()
	_ = l.conn.Close()
}

// post sends a whole request and reads its answer, which must be a 202.
func (l *line) post(request []byte) error {
	if _, err := l.conn.Write(request); err != nil {
		return err
	}
	return accepted(l.r)
}

var lengthHeader = []byte("content-length:")

// accepted reads one answer of a server that always sends a Content-Length, and is an error unless it is a 202.
func accepted(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	status := strings.TrimSpace(string(line))
	length := 0
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if len(line) > len(lengthHeader) && bytes.EqualFold(line[:len(lengthHeader)], lengthHeader) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthHeader):]))); err != nil {
				return fmt.Errorf("answer: %w", err)
			}
		}
	}
	if _, err = r.Discard(length); err != nil {
		return err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 202") {
		return fmt.Errorf("answer %q", status)
	}
	return nil
}

// topic makes a topic with a name of its own on the source of the pair.
func (s *stand) topic(ctx context.Context, n *node, kind string) (string, error) {
	s.copies++
	name := fmt.Sprintf("%s-%d", kind, s.copies)
	_, err := n.client.CreateTopic(ctx, wire.CreateTopic{Name: name})
	if err != nil {
		return "", fmt.Errorf("topic %s: %w", name, err)
	}
	return name, nil
}

// settled deletes the topic of a load once its records are in its partitions, so that no work is left for the next figure.
func (s *stand) settled(ctx context.Context, n *node, topic string, produced int) error {
	if err := stored(ctx, n, topic, produced); err != nil {
		return err
	}
	return n.client.DeleteTopic(ctx, topic, false)
}

// produceAlone measures a load on a topic without children.
func (s *stand) produceAlone(ctx context.Context, of func(*node, string) load) (copied, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return copied{}, err
	}
	topic, err := s.topic(ctx, p.source, "alone")
	if err != nil {
		return copied{}, err
	}
	c, err := s.produce(ctx, p.source, of(p.source, topic))
	if err != nil {
		return copied{}, err
	}
	return c, s.settled(ctx, p.source, topic, c.records+c.warm)
}

// keepUpLimit is how long after a load its link may still lag: a link that is further behind did not keep up.
const keepUpLimit = 5 * time.Second

// produceFollowed measures single produce on a topic with a remote child, which must keep up.
func (s *stand) produceFollowed(ctx context.Context) (copied, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return copied{}, err
	}
	topic, err := s.topic(ctx, p.source, "followed")
	if err != nil {
		return copied{}, err
	}
	if _, err = p.target.client.CreateTopic(ctx, wire.CreateTopic{Name: topic}); err != nil {
		return copied{}, fmt.Errorf("topic %s of the target: %w", topic, err)
	}
	child := topic + "-to-b"
	if err = attach(ctx, p.source, topic, wire.AttachChild{Child: child, Remote: remoteName}); err != nil {
		return copied{}, err
	}
	c, err := s.produce(ctx, p.source, s.single(p.source, topic))
	if err != nil {
		return copied{}, err
	}
	start := time.Now()
	if err = stored(ctx, p.source, topic, c.records+c.warm); err != nil {
		return copied{}, err
	}
	if err = noLag(ctx, p.source, topic, child); err != nil {
		return copied{}, err
	}
	if late := time.Since(start); late > keepUpLimit {
		return copied{}, fmt.Errorf("the remote child did not keep up: it lagged for %s after the load", late.Round(time.Millisecond))
	}
	if err = detach(ctx, p.source, topic, child); err != nil {
		return copied{}, err
	}
	if err = p.source.client.DeleteTopic(ctx, topic, false); err != nil {
		return copied{}, err
	}
	return c, s.settled(ctx, p.target, topic, c.records+c.warm)
}
