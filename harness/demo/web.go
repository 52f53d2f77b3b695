package demo

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

var errCA = errors.New("the demo's CA file holds no certificate")

// trusting is an HTTP client that trusts the demo's CA alone.
func trusting(ca []byte) (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errCA
	}
	return &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}, nil
}
