package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// ErrSecret is returned when the two ends do not hold the same cluster secret, or the other end is no node at all.
var ErrSecret = errors.New("the other end does not hold the same NARAD_CLUSTER_SECRET")

// ErrCluster is returned when both ends hold the secret and each knows its cluster, and these differ.
var ErrCluster = errors.New("the other end is of another cluster, see storage.data_dir and cluster.peers of both")

// ErrNoSecret is returned by Serve and Call without a cluster secret.
var ErrNoSecret = errors.New("peer: NARAD_CLUSTER_SECRET is not set")

const (
	exporterLabel    = "EXPORTER-narad-peer-proof-1"
	roleClient       = "narad peer proof 1: client"
	roleServer       = "narad peer proof 1: server"
	handshakeTimeout = 10 * time.Second

	accepted byte = 1
	refused  byte = 0
	foreign  byte = 2 // the secret is right and the cluster is not

	// Both ends say their cluster where ALPN agrees on it; a release that does not know it agrees on h2 alone.
	saysCluster = "narad-peer-cluster"
	maxCluster  = 64 // bytes of an ID
)

// proof implements gRPC's transport credentials: TLS 1.3, then the client's proof, then the server's verdict and proof.
type proof struct {
	secret []byte
	cert   tls.Certificate // the server's; zero in a client
	failed func(error)     // told about each handshake that did not end well; may be nil

	cluster func() string // the ID of this node's cluster, empty when it is not known; nil in a release that does not say it
}

// protocols are what ALPN is offered.
func (p *proof) protocols() []string {
	if p.cluster == nil {
		return []string{"h2"}
	}
	return []string{saysCluster, "h2"}
}

// says tells whether both ends say their cluster.
func says(c *tls.Conn) bool { return c.ConnectionState().NegotiatedProtocol == saysCluster }

// mine is this end's cluster as it is said.
func (p *proof) mine() string {
	id := p.cluster()
	return id[:min(len(id), maxCluster)]
}

// named appends this end's cluster where both say it.
func (p *proof) named(c *tls.Conn, message []byte) []byte {
	if !says(c) {
		return message
	}
	id := p.mine()
	return append(append(message, byte(len(id))), id...)
}

// compare reads the other end's cluster where both say it. ErrCluster when both know theirs and these differ.
func (p *proof) compare(c *tls.Conn) error {
	if !says(c) {
		return nil
	}
	var n [1]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return fmt.Errorf("read the cluster's ID: %w", err)
	}
	if n[0] > maxCluster {
		return fmt.Errorf("read the cluster's ID: %d bytes are too many", n[0])
	}
	theirs := make([]byte, n[0])
	if _, err := io.ReadFull(c, theirs); err != nil {
		return fmt.Errorf("read the cluster's ID: %w", err)
	}
	if mine := p.mine(); mine != "" && len(theirs) > 0 && mine != string(theirs) {
		return fmt.Errorf("%w: it is of %q, this node of %q", ErrCluster, theirs, mine)
	}
	return nil
}

// prove is what the end in a role says in one session.
func prove(secret []byte, role string, c *tls.Conn) ([]byte, error) {
	state := c.ConnectionState()
	material, err := state.ExportKeyingMaterial(exporterLabel, nil, 32)
	if err != nil {
		return nil, fmt.Errorf("export keying material: %w", err)
	}
	m := hmac.New(sha256.New, secret)
	_, _ = m.Write([]byte(role)) // a hash never fails
	_, _ = m.Write(material)
	return m.Sum(nil), nil
}

// ClientHandshake proves the secret to the server and checks the server's proof.
func (p *proof) ClientHandshake(ctx context.Context, _ string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	below := &gathering{Conn: raw}
	c := tls.Client(below, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: p.protocols(), ServerName: "narad",
		InsecureSkipVerify: true, // the certificate says nothing; the proof below binds the session
	})
	err := p.within(ctx, raw, func() error { return p.ask(ctx, c) })
	return p.done(session{c, below}, err)
}

func (p *proof) ask(ctx context.Context, c *tls.Conn) error {
	if err := c.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	mine, err := prove(p.secret, roleClient, c)
	if err != nil {
		return err
	}
	want, err := prove(p.secret, roleServer, c)
	if err != nil {
		return err
	}
	if _, err = c.Write(p.named(c, mine)); err != nil {
		return fmt.Errorf("send the proof: %w", err)
	}
	answer := make([]byte, 1+sha256.Size)
	if _, err = io.ReadFull(c, answer); err != nil {
		return fmt.Errorf("read the answer to the proof: %w", err)
	}
	if answer[0] == refused || !hmac.Equal(answer[1:], want) {
		return ErrSecret
	}
	if err = p.compare(c); err != nil {
		return err
	}
	if answer[0] == foreign {
		return ErrCluster
	}
	return nil
}

// ServerHandshake checks the client's proof and answers with the server's. A client that fails gets no proof.
func (p *proof) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	below := &gathering{Conn: raw}
	c := tls.Server(below, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: p.protocols(), Certificates: []tls.Certificate{p.cert},
		SessionTicketsDisabled: true,
	})
	err := p.within(context.Background(), raw, func() error { return p.answer(c) })
	return p.done(session{c, below}, err)
}

func (p *proof) answer(c *tls.Conn) error {
	if err := c.HandshakeContext(context.Background()); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	want, err := prove(p.secret, roleClient, c)
	if err != nil {
		return err
	}
	got := make([]byte, sha256.Size)
	if _, err = io.ReadFull(c, got); err != nil {
		return fmt.Errorf("read the proof: %w", err)
	}
	answer := make([]byte, 1+sha256.Size)
	answer[0] = refused
	if !hmac.Equal(got, want) {
		// The verdict is only there for a clear error at the other end, so a failed write changes nothing.
		_, _ = c.Write(answer)
		return ErrSecret
	}
	other := p.compare(c)
	if other != nil && !errors.Is(other, ErrCluster) {
		return other
	}
	mine, err := prove(p.secret, roleServer, c)
	if err != nil {
		return err
	}
	answer[0] = accepted
	if other != nil {
		answer[0] = foreign
	}
	copy(answer[1:], mine)
	if _, err = c.Write(p.named(c, answer)); err != nil {
		return fmt.Errorf("send the proof: %w", err)
	}
	return other
}

// within runs a handshake with a deadline on the connection, which it takes away again.
func (p *proof) within(ctx context.Context, raw net.Conn, handshake func() error) error {
	deadline := time.Now().Add(handshakeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := raw.SetDeadline(deadline); err != nil {
		return fmt.Errorf("set the deadline of the handshake: %w", err)
	}
	if err := handshake(); err != nil {
		return err
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("clear the deadline of the handshake: %w", err)
	}
	return nil
}

func (p *proof) done(s session, err error) (net.Conn, credentials.AuthInfo, error) {
	if err != nil {
		_ = s.below.Close()
		if p.failed != nil {
			p.failed(err)
		}
		return nil, nil, err
	}
	return s, proven{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// proven tells gRPC that the connection is private and both ends have proven the secret.
type proven struct{ credentials.CommonAuthInfo }

// AuthType names the proof.
func (proven) AuthType() string { return "narad-cluster-secret" }

// Info describes the protocol to gRPC.
func (p *proof) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns a copy.
func (p *proof) Clone() credentials.TransportCredentials { q := *p; return &q }

// OverrideServerName does nothing: the server has no name of its own.
func (p *proof) OverrideServerName(string) error { return nil }

// throwAway makes the certificate of one server run. TLS wants one; nobody looks at it.
func throwAway() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the peer key: %w", err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "narad"}, DNSNames: []string{"narad"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the peer certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
