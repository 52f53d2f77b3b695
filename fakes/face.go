package fakes

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Faces of a TLS edge: what a caller meets before any HTTP (ANS-21, DEC-05).
const (
	FaceGood        = "good"          // the rig's certificate
	FaceExpired     = "expired"       // a certificate that has expired
	FaceNotYetValid = "not_yet_valid" // one that is for next year
	FaceOtherName   = "other_name"    // one for another name
	FaceOtherCA     = "other_ca"      // one of the rig's other authority
	FaceOldTLS      = "tls_1.1"       // TLS 1.1 at most
	FaceAlert       = "alert"         // an alert instead of a handshake
	FaceStall       = "stall"         // the handshake is never answered
	FacePlain       = "plain"         // HTTP without TLS
)

// FaceNames are all faces but the good one.
var FaceNames = []string{
	FaceExpired, FaceNotYetValid, FaceOtherName, FaceOtherCA, FaceOldTLS, FaceAlert, FaceStall, FacePlain,
}

// FaceCount is what an edge met under one face.
type FaceCount struct {
	Accepted int `json:"accepted"` // connections
	Served   int `json:"served"`   // requests that came over them, which needs a handshake; 0 is every one refused
}

// Faces makes the certificates of the faces that have one of their own; the others use the edge's.
func (ca *CA) Faces(now time.Time, other *CA, hosts ...string) (map[string]Cert, error) {
	out := map[string]Cert{}
	for face, of := range map[string]struct {
		ca    *CA
		at    time.Time
		hosts []string
	}{
		FaceExpired:     {ca, now.Add(-validity - 24*time.Hour), hosts},
		FaceNotYetValid: {ca, now.Add(validity + 24*time.Hour), hosts},
		FaceOtherName:   {ca, now, []string{"another.invalid"}},
		FaceOtherCA:     {other, now, hosts},
	} {
		cert, err := of.ca.Issue(of.at, of.hosts...)
		if err != nil {
			return nil, err
		}
		out[face] = cert
	}
	return out, nil
}

// errFace is why the edge ends a handshake with an alert; the caller sees the alert alone.
var errFace = errors.New("the edge shows the face of an alert")

// faces is the listener of an edge. It gives every connection the face of the moment.
type faces struct {
	net.Listener
	confs map[string]*tls.Config

	mu     sync.Mutex // guards what follows
	face   string
	conns  map[*faced]struct{}
	counts map[string]FaceCount
}

func newFaces(ln net.Listener, good *tls.Config, certs map[string]Cert) (*faces, error) {
	e := &faces{
		Listener: ln, face: FaceGood, conns: map[*faced]struct{}{}, counts: map[string]FaceCount{}, confs: map[string]*tls.Config{FaceGood: good},
	}
	for face, cert := range certs {
		conf, err := serverTLS(cert)
		if err != nil {
			return nil, err
		}
		e.confs[face] = conf
	}
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	alert := good.Clone()
	alert.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errFace }
	e.confs[FaceOldTLS], e.confs[FaceAlert] = old, alert
	return e, nil
}

// faced is a connection that an edge accepted.
type faced struct {
	net.Conn
	edge *faces
	face string
}

// Close forgets the connection.
func (c *faced) Close() error {
	c.edge.mu.Lock()
	delete(c.edge.conns, c)
	c.edge.mu.Unlock()
	return c.Conn.Close()
}

// stalled reads and answers nothing until the caller goes away.
type stalled struct{ *faced }

// Read returns at the end alone.
func (c stalled) Read([]byte) (int, error) {
	if _, err := io.Copy(io.Discard, c.Conn); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Accept gives the next connection its face.
func (e *faces) Accept() (net.Conn, error) {
	raw, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &faced{Conn: raw, edge: e}
	e.mu.Lock()
	c.face = e.face
	e.conns[c] = struct{}{}
	n := e.counts[c.face]
	n.Accepted++
	e.counts[c.face] = n
	e.mu.Unlock()
	switch c.face {
	case FacePlain:
		return c, nil
	case FaceStall:
		return stalled{c}, nil
	}
	return tls.Server(c, e.confs[c.face]), nil
}

// set changes the face of what comes from now on. A bad face also ends every connection that is there, as an edge does that starts anew with
// it; under a good one those of the face before live on.
func (e *faces) set(face string) error {
	if _, ok := e.confs[face]; !ok && face != FaceStall && face != FacePlain {
		return fmt.Errorf("face %q is none of good, %s, or has no certificate here", face, strings.Join(FaceNames, ", "))
	}
	e.mu.Lock()
	e.face = face
	old := slices.Collect(maps.Keys(e.conns))
	e.mu.Unlock()
	if face == FaceGood {
		return nil
	}
	for _, c := range old {
		_ = c.Close() // one that has ended by itself is closed as well
	}
	return nil
}

// served counts a request that came over c.
func (e *faces) served(c net.Conn) {
	f, ok := bare(c).(*faced)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.counts[f.face]
	n.Served++
	e.counts[f.face] = n
}

func (e *faces) met() map[string]FaceCount {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.counts)
}

// bare is the connection under TLS.
func bare(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}
