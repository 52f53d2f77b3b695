package fakes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is how long a certificate holds on each side of the time it was made for: clock scenarios step by up to 400 days,
// and one that must expire is made for another time.
const validity = 365 * 24 * time.Hour

// CA is a certificate authority of one rig. Its key never leaves the process.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

// Cert is a server certificate with its key, both PEM, in the form that a config carries into a container.
type Cert struct {
	CertPEM string `json:"cert_pem"`
	KeyPEM  string `json:"key_pem"`
}

// NewCA makes an authority that is valid a year before and a year after now, which is a parameter because a bubble has a
// time of its own.
func NewCA(now time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("harness CA: %w", err)
	}
	tmpl := template("narad chaos harness", now)
	tmpl.IsCA = true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("harness CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("harness CA: %w", err)
	}
	return &CA{cert: cert, key: key, pem: block("CERTIFICATE", der)}, nil
}

// PEM is the authority's certificate: the ca_pem of a remote.
func (ca *CA) PEM() string { return ca.pem }

// Issue makes a certificate for hosts (names and addresses), valid a year around now.
func (ca *CA) Issue(now time.Time, hosts ...string) (Cert, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Cert{}, fmt.Errorf("harness certificate: %w", err)
	}
	tmpl := template("narad chaos edge", now)
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} // a node of a cluster dials with its own
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return Cert{}, fmt.Errorf("harness certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Cert{}, fmt.Errorf("harness certificate: %w", err)
	}
	return Cert{CertPEM: block("CERTIFICATE", der), KeyPEM: block("PRIVATE KEY", keyDER)}, nil
}

func template(name string, now time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		serial = big.NewInt(now.UnixNano()) // unreachable: the system's random source never fails
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: now.Add(-validity), NotAfter: now.Add(validity),
	}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// serverTLS is the TLS configuration of an edge: HTTP/1.1 alone, as NET-01 has it.
func serverTLS(c Cert) (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(c.CertPEM), []byte(c.KeyPEM))
	if err != nil {
		return nil, fmt.Errorf("edge certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}
