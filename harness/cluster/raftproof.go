package cluster

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"narad.example/fakes"
)

// The files of mutual TLS between the Rafts of a cluster, as its nodes find them in one folder.
const (
	raftCA   = "raft-ca.pem"
	raftCert = "raft-cert.pem"
	raftKey  = "raft-key.pem"
)

// newRaftProof makes the files by name: an authority of a side's own, and one certificate for the hosts at which the nodes find each other, which
// all of them show.
func newRaftProof(hosts ...string) (map[string]string, error) {
	now := time.Now()
	ca, err := fakes.NewCA(now)
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue(now, hosts...)
	if err != nil {
		return nil, err
	}
	return map[string]string{raftCA: ca.PEM(), raftCert: cert.CertPEM, raftKey: cert.KeyPEM}, nil
}

// proofSettings are those of cluster.* that name the files in a folder.
func proofSettings(folder string) map[string]any {
	return map[string]any{
		"tls_ca_file": path.Join(folder, raftCA), "tls_cert_file": path.Join(folder, raftCert), "tls_key_file": path.Join(folder, raftKey),
	}
}

// keepProof writes the files into a folder of this machine.
func keepProof(folder string, files map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("%w: files of Raft: %w", ErrTrouble, err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("%w: files of Raft: %w", ErrTrouble, err)
		}
	}
	return nil
}
