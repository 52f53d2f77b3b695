package outbound

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Bounds of a CA bundle (api.md: Remotes).
const (
	MaxCABytes        = 64 << 10
	MaxCACertificates = 16
)

// errCA never quotes the bundle.
var errCA = errors.New("ca_pem must hold 1 to 16 PEM certificates, at most 64 KiB, and nothing else")

// ParseCA reads a CA bundle: 1 to MaxCACertificates certificates in at most MaxCABytes, and nothing else but white space.
func ParseCA(bundle string) ([]*x509.Certificate, error) {
	if len(bundle) > MaxCABytes {
		return nil, errCA
	}
	var certs []*x509.Certificate
	rest := bytes.TrimSpace([]byte(bundle))
	for len(rest) > 0 {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN CERTIFICATE-----")) {
			return nil, errCA
		}
		block, after := pem.Decode(rest)
		// A damaged block is skipped by Decode in favour of a later one: then one BEGIN line too many has gone by.
		if block == nil || len(block.Headers) > 0 || bytes.Count(rest[:len(rest)-len(after)], []byte("-----BEGIN")) != 1 {
			return nil, errCA
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errCA
		}
		certs = append(certs, cert)
		rest = bytes.TrimSpace(after)
	}
	if len(certs) == 0 || len(certs) > MaxCACertificates {
		return nil, errCA
	}
	return certs, nil
}

// tlsConfig is NET-01. There is no session cache, so a connection never rests on a verification made under an older bundle.
func tlsConfig(host, bundle string) (*tls.Config, error) {
	conf := &tls.Config{
		MinVersion:                  tls.VersionTLS12,
		CurvePreferences:            []tls.CurveID{tls.X25519MLKEM768, tls.X25519},
		NextProtos:                  []string{"http/1.1"},
		ServerName:                  host,
		DynamicRecordSizingDisabled: true, // chunks are large; the first byte is in no hurry
	}
	if bundle == "" {
		return conf, nil
	}
	certs, err := ParseCA(bundle)
	if err != nil {
		return nil, err
	}
	conf.RootCAs = x509.NewCertPool()
	for _, c := range certs {
		conf.RootCAs.AddCert(c)
	}
	return conf, nil
}
