package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"narad.example/fakes"
)

// probeLimit bounds a probe whose context has no deadline.
const probeLimit = 10 * time.Second

// Prober opens connections through the link to the far end's ping route. It speaks HTTP by hand, because the evidence for
// some faults is how a connection ends. A backend gives it the way to the link.
type Prober struct {
	Dial  func(ctx context.Context) (net.Conn, error) // to the link, as seen from the harness
	Host  string                                      // the name in the far end's certificate
	Roots *x509.CertPool
}

// held is a connection that is kept.
type held struct {
	raw  net.Conn
	tls  *tls.Conn
	in   *bufio.Reader
	host string
}

// Hold opens a connection and keeps it.
func (p *Prober) Hold(ctx context.Context) (Held, error) {
	h, err := p.hold(ctx)
	if err != nil {
		return nil, err // not h: a nil pointer in an interface is no nil
	}
	return h, nil
}

func (p *Prober) hold(ctx context.Context) (*held, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	raw, err := p.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	defer stop()
	c := tls.Client(raw, &tls.Config{RootCAs: p.Roots, ServerName: p.Host, MinVersion: tls.VersionTLS12})
	if err = c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("probe: %w", err), raw.Close())
	}
	return &held{raw: raw, tls: c, in: bufio.NewReader(c), host: p.Host}, nil
}

// Probe is a whole life of a connection. It ends when the far end's goodbye and the end of the TCP stream have arrived.
func (p *Prober) Probe(ctx context.Context, n int) (time.Duration, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	start := time.Now()
	h, err := p.hold(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = h.Close() }()
	if _, err = h.ask(ctx, n, true); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

func (h *held) Ping(ctx context.Context, n int) (time.Duration, error) { return h.ask(ctx, n, false) }

func (h *held) Close() error { return h.raw.Close() }

// ask sends n bytes and reads them back. With last the far end closes afterwards, and that end is awaited too.
func (h *held) ask(ctx context.Context, n int, last bool) (time.Duration, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := h.raw.SetDeadline(time.Time{}); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = h.raw.SetDeadline(time.Now()) })
	defer stop()
	start := time.Now()
	body := bytes.Repeat([]byte{'.'}, n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+h.host+fakes.PingPath, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	req.Close = last
	if err = req.Write(h.tls); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	res, err := http.ReadResponse(h.in, req)
	if err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	back, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	if res.StatusCode != http.StatusOK || !bytes.Equal(back, body) {
		return 0, fmt.Errorf("probe: status %d with %d of %d bytes", res.StatusCode, len(back), n)
	}
	if last {
		// The TLS goodbye is data; only the raw end of the stream tells that the connection closed.
		if _, err = io.Copy(io.Discard, h.in); err == nil {
			_, err = io.Copy(io.Discard, h.raw)
		}
		if err != nil {
			return 0, fmt.Errorf("probe: %w", err)
		}
	}
	return time.Since(start), nil
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, probeLimit)
}
