package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Network is how a node meets the world. The real one is OSNetwork; a simulation hands in one in memory.
type Network interface {
	// Listen opens a TCP listener.
	Listen(network, address string) (net.Listener, error)
	// Dial connects. Control, when not nil, is asked for each address after resolution and before the connect; an error of it
	// refuses that address (NET-05).
	Dial(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
}

// certificates serves a certificate from two files and reads them again when they change (architecture: TLS on the API).
type certificates struct {
	certFile, keyFile string

	// mu guards what was read last and when the files were last looked at.
	mu      sync.Mutex
	cert    *tls.Certificate
	stamp   [2]time.Time
	checked time.Time
}

// recheck is how often the files are looked at; a handshake in between takes what is there.
const recheck = 10 * time.Second

func newCertificates(certFile, keyFile string) (*certificates, error) {
	c := &certificates{certFile: certFile, keyFile: keyFile}
	_, err := c.get(nil)
	return c, err
}

// get is a tls.Config's GetCertificate. While the new files cannot be read the old certificate goes on.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cert != nil && time.Since(c.checked) < recheck {
		return c.cert, nil
	}
	c.checked = time.Now()
	var stamp [2]time.Time
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	if c.cert != nil && stamp == c.stamp {
		return c.cert, nil
	}
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		if c.cert != nil {
			return c.cert, nil
		}
		return nil, fmt.Errorf("setting http.tls_cert_file: %w", err)
	}
	c.cert, c.stamp = &cert, stamp
	return c.cert, nil
}

// config is the API's TLS configuration: HTTP/1.1, TLS 1.2 or later.
func (c *certificates) config() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}
