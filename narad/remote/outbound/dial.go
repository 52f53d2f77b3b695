package outbound

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// DialFunc opens a TCP connection to "host:port". It resolves the name itself and calls control with each address that it is about
// to connect to; an address that control refuses gets no packet, and the next one is tried.
type DialFunc func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)

// NetDial dials over the operating system's network.
func NetDial() DialFunc {
	return func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error) {
		d := net.Dialer{Control: func(network, address string, _ syscall.RawConn) error { return control(network, address) }}
		return d.DialContext(ctx, network, address)
	}
}

// tally counts what the guard said about the addresses of one dial, which may be tried side by side.
type tally struct {
	mu      sync.Mutex // guards the two below
	refusal error      // the first
	passed  int
}

func (t *tally) control(g *Guard) func(network, address string) error {
	return func(network, address string) error {
		err := g.Control(network, address)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case err == nil:
			t.passed++
		case t.refusal == nil:
			t.refusal = err
		}
		return err
	}
}

// verdict is the dial's error: the guard's only when it refused every address, since a name with good and bad addresses is
// reached over the good ones alone (DEC-06).
func (t *tally) verdict(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.refusal == nil:
		return err
	case t.passed == 0:
		return t.refusal
	}
	return errGoodFailed // the dialer may report the refusal although the good addresses failed
}

// open dials, shakes hands and starts the read loop.
func (c *Client) open(ctx, caller context.Context) (*conn, *Failure) {
	if err := c.guard.CheckURL(c.url); err != nil {
		return nil, failed(ctx, caller, err, false)
	}
	var t tally
	raw, err := c.dial(ctx, "tcp", c.addr, t.control(c.guard))
	if err != nil {
		return nil, failed(ctx, caller, t.verdict(err), false)
	}
	cn := newConn(c, raw)
	if err := cn.tls.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the handshake's error says more
		return nil, failed(ctx, caller, err, true)
	}
	cn.certNotAfter = cn.tls.ConnectionState().PeerCertificates[0].NotAfter
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close() // nothing was sent on it
		return nil, &Failure{Class: Canceled}
	}
	c.wg.Go(cn.readLoop)
	return cn, nil
}
