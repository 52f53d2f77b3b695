package meta

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Why a node has nothing to do with another one. The errors that wrap them name the setting.
var (
	ErrOtherCluster = errors.New("meta: the other node is of another cluster")
	ErrOtherNode    = errors.New("meta: the other node is not the one that was looked for")
	ErrNoMember     = errors.New("meta: the cluster does not know the node")
)

const (
	greetTimeout = 5 * time.Second
	warnEvery    = time.Minute
	maxHello     = 1 << 10
)

// opening begins a hello. No request of Raft begins with its first byte, so a release that knows no hello hangs up.
var opening = [4]byte{'N', 'R', 'D', 1}

// hello is what both ends of a Raft connection say first: the dialer, then the one that was dialled. The words travel between releases.
type hello struct {
	Cluster string `json:"cluster,omitempty"` // empty when it is not known
	Node    string `json:"node"`
	To      string `json:"to,omitempty"`      // of a dialer: whom it looks for
	Refused string `json:"refused,omitempty"` // of an answer, why
}

// The words of a refusal.
const (
	saysOtherCluster = "other_cluster"
	saysOtherNode    = "other_node"
	saysNoMember     = "no_member"
)

// greeter compares who is at the other end of a Raft connection with who should be. A cluster's ID is compared when both ends know one: a
// node that joins knows none yet. Once a node knows its cluster's ID every member greets, and it takes no connection without a hello.
type greeter struct {
	node      string
	log       *slog.Logger
	strangers func(error)
	servers   atomic.Pointer[raft.Raft] // nil while Raft starts

	mu      sync.Mutex // guards the rest
	cluster string
	warned  time.Time
}

func (g *greeter) known() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cluster
}

func (g *greeter) learn(cluster string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cluster == "" {
		g.cluster = cluster
	}
}

// configuration is nil while it is not known.
func (g *greeter) configuration() []Server {
	r := g.servers.Load()
	if r == nil {
		return nil
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return serversOf(f.Configuration())
}

// judge says what speaks against who dialled, "" for nothing.
func (g *greeter) judge(h hello) string {
	mine := g.known()
	switch {
	case mine != "" && h.Cluster != "" && mine != h.Cluster:
		return saysOtherCluster
	case h.To != "" && h.To != g.node:
		return saysOtherNode
	case mine != "" && h.Cluster == "" && !slices.ContainsFunc(g.configuration(), func(s Server) bool { return s.ID == h.Node }):
		return saysNoMember // it made a cluster of its own: whoever is let in waits to be dialled
	}
	return ""
}

// explain makes an error of a refusal, in the words of the end that reads it.
func (g *greeter) explain(why, dialer, dialled, at, theirs string) error {
	mine := g.known()
	switch why {
	case saysOtherCluster:
		return fmt.Errorf("%w: %s is of cluster %s and the metadata of this node of cluster %s: see storage.data_dir and cluster.peers of both",
			ErrOtherCluster, at, theirs, mine)
	case saysOtherNode:
		return fmt.Errorf("%w: node %s looks for another one than %s: see cluster.node_id, cluster.peers and cluster.advertise_addr of both",
			ErrOtherNode, dialer, dialled)
	case saysNoMember:
		return fmt.Errorf("%w: node %s made a cluster of its own beside that of %s: see its cluster.initial_members, which names those that made it",
			ErrNoMember, dialer, dialled)
	}
	return fmt.Errorf("%s refused the connection: %q", at, why)
}

// refuse tells about a stranger, the log once a minute.
func (g *greeter) refuse(err error) {
	if g.strangers != nil {
		g.strangers(err)
	}
	g.mu.Lock()
	due := g.warned.IsZero() || time.Since(g.warned) >= warnEvery
	if due {
		g.warned = time.Now()
	}
	g.mu.Unlock()
	if due {
		g.log.Warn("a Raft connection was refused: the node at its other end does not belong to this one", slog.Any("cause", err))
	}
}

// greeted is a stream layer whose connections begin with a hello.
type greeted struct {
	raft.StreamLayer
	by *greeter
}

// Accept takes the next connection. Its hello is read with its first bytes, in the goroutine that reads them.
func (l *greeted) Accept() (net.Conn, error) {
	c, err := l.StreamLayer.Accept()
	if err != nil {
		return nil, err
	}
	return &incoming{Conn: c, by: l.by}, nil
}

// Dial connects and greets. While the cluster has no ID the other end may be of a release that knows no hello, and is dialled again without.
func (l *greeted) Dial(a raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	c, err := l.StreamLayer.Dial(a, timeout)
	if err != nil {
		return nil, err
	}
	err = l.by.greet(c, string(a), timeout)
	if err == nil {
		return c, nil
	}
	_ = c.Close()
	var slow net.Error
	strange := errors.Is(err, ErrOtherCluster) || errors.Is(err, ErrOtherNode) || errors.Is(err, ErrNoMember)
	if strange {
		l.by.refuse(err)
	}
	if strange || l.by.known() != "" || errors.Is(err, errNoHello) || errors.As(err, &slow) && slow.Timeout() {
		return nil, err
	}
	return l.StreamLayer.Dial(a, timeout)
}

var errNoHello = errors.New("meta: no hello of a node")

// greet is the dialer's part.
func (g *greeter) greet(c net.Conn, at string, timeout time.Duration) error {
	h := hello{Cluster: g.known(), Node: g.node}
	servers := g.configuration()
	if i := slices.IndexFunc(servers, func(s Server) bool { return s.Addr == at }); i >= 0 {
		h.To = servers[i].ID
	}
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("greet %s: %w", at, err)
	}
	if err := h.write(c); err != nil {
		return fmt.Errorf("greet %s: %w", at, err)
	}
	answer, err := readHello(c)
	if err != nil {
		return fmt.Errorf("the hello of %s: %w", at, err)
	}
	back := hello{Cluster: answer.Cluster, Node: answer.Node}
	why := answer.Refused
	switch {
	case why != "":
	case h.Cluster != "" && back.Cluster != "" && h.Cluster != back.Cluster:
		why = saysOtherCluster
	case h.To != "" && h.To != back.Node:
		why = saysOtherNode
	}
	if why != "" {
		return g.explain(why, g.node, back.Node, at, back.Cluster)
	}
	return c.SetDeadline(time.Time{})
}

// incoming is a connection that another node dialled.
type incoming struct {
	net.Conn
	by *greeter

	begun bool // only the one goroutine that reads touches these
	first []byte
	err   error
}

// Read reads what follows the hello. Raft says nothing about the end of a connection, which is how a refused one looks to it.
func (c *incoming) Read(b []byte) (int, error) {
	if !c.begun {
		c.begun = true
		c.first, c.err = c.open()
	}
	switch {
	case c.err != nil:
		return 0, io.EOF
	case len(c.first) > 0:
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// open answers a hello, and returns what was read behind it; of a dialer that knows none, all that was read. It reads what is there at once,
// since a connection that is closed over bytes that nobody read ends in a reset. Whoever dials speaks at once, so that silence ends it as well;
// with TLS that bounds the handshake, which comes first.
func (c *incoming) open() ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return nil, err
	}
	first := make([]byte, maxHello)
	n, err := io.ReadAtLeast(c.Conn, first, 1)
	if err != nil {
		return nil, err
	}
	first = first[:n]
	if first[0] != opening[0] {
		if c.by.known() == "" {
			return first, c.SetDeadline(time.Time{})
		}
		err = fmt.Errorf("%w: %s is of a release that the cluster has left behind: upgrade it", errNoHello, c.RemoteAddr())
		c.by.refuse(err)
		return nil, err
	}
	read := bytes.NewReader(first)
	h, err := readHello(io.MultiReader(read, c.Conn))
	if err != nil {
		return nil, err
	}
	answer := hello{Cluster: c.by.known(), Node: c.by.node, Refused: c.by.judge(h)}
	if err = answer.write(c.Conn); err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		err = c.by.explain(answer.Refused, h.Node, c.by.node, c.RemoteAddr().String(), h.Cluster)
		c.by.refuse(err)
		return nil, err
	}
	return first[n-read.Len():], c.SetDeadline(time.Time{})
}

func (h *hello) write(w io.Writer) error {
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(slices.Concat(opening[:], binary.BigEndian.AppendUint16(nil, uint16(len(body))), body))
	return err
}

func readHello(r io.Reader) (h hello, err error) {
	var head [len(opening) + 2]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return h, err
	}
	n := binary.BigEndian.Uint16(head[len(opening):])
	if [4]byte(head[:]) != opening || n > maxHello {
		return h, errNoHello
	}
	body := make([]byte, n)
	if _, err = io.ReadFull(r, body); err != nil {
		return h, err
	}
	if json.Unmarshal(body, &h) != nil || h.Node == "" {
		return h, errNoHello
	}
	return h, nil
}
