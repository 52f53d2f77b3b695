package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/hashicorp/raft"
)

// raftTLS is mutual TLS 1.3 from the cluster.tls_* files, nil when Raft goes in plaintext.
func (n *Node) raftTLS() (*tls.Config, error) {
	c := n.cfg.Cluster
	if c.TLSCertFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("setting cluster.tls_cert_file: %w", err)
	}
	pem, err := os.ReadFile(c.TLSCAFile)
	if err != nil {
		return nil, fmt.Errorf("setting cluster.tls_ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("setting cluster.tls_ca_file: %w", errTLSFiles)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}

// stream is Raft's transport over the node's network.
type stream struct {
	net.Listener
	dial      func(ctx context.Context, addr string) (net.Conn, error)
	advertise string
	tls       *tls.Config
	failed    func(error) // hears why a proof failed
}

// Accept takes the next connection of another node's Raft.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil || s.tls == nil {
		return c, err
	}
	return &proving{Conn: tls.Server(c, s.tls), addr: c.RemoteAddr().String(), failed: s.failed}, nil
}

// Dial connects to another node's Raft.
func (s *stream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.dial(ctx, string(addr))
	if err != nil || s.tls == nil {
		return c, err
	}
	host, _, err := net.SplitHostPort(string(addr))
	if err != nil {
		return nil, err
	}
	cfg := s.tls.Clone()
	cfg.ServerName = host
	secured := &proving{Conn: tls.Client(c, cfg), addr: string(addr), failed: s.failed}
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, secured.explain(err)
	}
	return secured, nil
}

// Addr is what the other nodes know this one by.
func (s *stream) Addr() net.Addr {
	if s.advertise == "" {
		return s.Listener.Addr()
	}
	return advertised(s.advertise)
}

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

// proving is a connection of mutual TLS whose errors name the setting when a certificate is why.
type proving struct {
	*tls.Conn
	addr   string
	failed func(error)
}

// Read reads; the first one of the end that was dialled does the handshake, and the other end learns there whether its certificate was taken.
func (c *proving) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

// explain names the setting. An alert of the other end is taken for one about this node's certificate, which nearly all alerts of mutual TLS are.
func (c *proving) explain(err error) error {
	var untrusted *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.As(err, &untrusted):
		err = fmt.Errorf("setting cluster.tls_ca_file: it does not vouch for the certificate of %s: %w", c.addr, err)
	case errors.As(err, &alert) && alert.Op == "remote error":
		err = fmt.Errorf("setting cluster.tls_cert_file: %s does not take this node's certificate: %w", c.addr, err)
	default:
		return err
	}
	c.failed(err)
	return err
}
