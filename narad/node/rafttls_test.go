package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
)

// certified gives a node the files of mutual TLS for Raft: a certificate of one authority, and the one that it takes others' from.
func (m *machine) certified(own, others *fakes.CA) {
	m.b.t.Helper()
	cert, err := own.Issue(time.Now(), m.name)
	require.NoError(m.b.t, err)
	dir := m.b.t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(m.b.t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	c := &m.config.Cluster
	c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile = write("cert.pem", cert.CertPEM), write("key.pem", cert.KeyPEM), write("ca.pem", others.PEM())
	m.config.Security.AllowPlaintextRaft = false
}

// Three nodes meet over mutual TLS. One whose certificate is of another authority, or that takes no other's, does not join, says which setting it is,
// and joins once that is mended.
//
// covers: BRK-07
func TestRaftOverTLS(t *testing.T) {
	for name, wrong := range map[string]struct {
		own, others bool // of the cluster's authority
		says        string
	}{
		"another authority's cluster": {false, false, "setting cluster.tls_c"}, // either is why
		"another authority's node":    {false, true, "setting cluster.tls_cert_file: "},
		"an old list of authorities":  {true, false, "setting cluster.tls_ca_file: "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				good, err := fakes.NewCA(time.Now())
				require.NoError(t, err)
				bad, err := fakes.NewCA(time.Now())
				require.NoError(t, err)
				pick := map[bool]*fakes.CA{true: good, false: bad}
				var all []*machine
				for i := range 3 {
					m := b.machine(fmt.Sprintf("n%d", i+1))
					m.config.Cluster.Addr, m.config.Cluster.Peers = ":7943", []string{"n1@n1:7943", "n2@n2:7943", "n3@n3:7943"}
					m.certified(good, good)
					all = append(all, m)
				}
				third := all[2]
				third.certified(pick[wrong.own], pick[wrong.others])
				for _, m := range all {
					m.start()
				}
				b.ready(all[0])
				b.ready(all[1])
				time.Sleep(10 * time.Second)
				require.Nil(t, all[0].member("n3"))
				_, err = third.node.Ready(t.Context())
				require.ErrorContains(t, err, wrong.says)
				third.stop()
				third.certified(good, good)
				third.start()
				b.ready(third)
				all[0].create("orders")
				b.everywhere(all, "orders")
				for _, m := range all {
					m.stop()
				}
			})
		})
	}
}
