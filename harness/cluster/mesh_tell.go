package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
)

// How a connection ended is the evidence of a cut, and what publishes a container's ports makes an orderly end of every reset. So a mesh does not
// hand out its connections: it tells what they say, and how they end, in frames of a kind, a length of two bytes and so many bytes.
const (
	toldData  = 'd'
	toldEnd   = 'e'
	toldReset = 'r'

	toldHead = 3
	toldMost = 16 << 10
)

// connected returns both ends of a connection in this process.
func connected() (one, other *net.TCPConn, err error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback(0))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	c, err := (&net.Dialer{Timeout: dialLimit}).Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c.(*net.TCPConn), far.(*net.TCPConn), nil //nolint:forcetypeassert // "tcp" gives nothing else
}

// tell writes what of says to, and how it ends; then both are closed.
func tell(to, of *net.TCPConn) {
	buf := make([]byte, toldHead+toldMost)
	for {
		n, err := of.Read(buf[toldHead:])
		if n > 0 {
			err = errors.Join(err, frame(to, buf[:toldHead+n], toldData))
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			_ = frame(to, buf[:toldHead], toldEnd) // who does not hear it has gone
		case errors.Is(err, syscall.ECONNRESET):
			_ = frame(to, buf[:toldHead], toldReset)
		}
		_ = to.Close()
		_ = of.Close()
		return
	}
}

func frame(to io.Writer, b []byte, kind byte) error {
	b[0] = kind
	binary.BigEndian.PutUint16(b[1:], uint16(len(b)-toldHead)) //nolint:gosec // toldMost at most
	_, err := to.Write(b)
	return err
}

// told is a connection that a mesh tells of: it ends as the one in the mesh did.
type told struct {
	net.Conn
	in    *bufio.Reader
	left  int // bytes of the present frame
	ended error
}

func newTold(c net.Conn) *told { return &told{Conn: c, in: bufio.NewReader(c)} }

// Read returns what the connection in the mesh read: io.EOF after its end, ECONNRESET after its reset.
func (t *told) Read(p []byte) (int, error) {
	for t.left == 0 {
		if t.ended != nil {
			return 0, t.ended
		}
		head, err := t.in.Peek(toldHead) // a deadline in the middle of it takes nothing
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		switch head[0] {
		case toldEnd:
			t.ended = io.EOF
		case toldReset:
			t.ended = syscall.ECONNRESET
		default:
			t.left = int(binary.BigEndian.Uint16(head[1:]))
		}
		if _, err = t.in.Discard(toldHead); err != nil {
			return 0, err
		}
	}
	n, err := t.in.Read(p[:min(len(p), t.left)])
	t.left -= n
	return n, err
}
