package node_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// Each way a start can fail names the setting in one line, leaves nothing running and nothing damaged: with the cause gone the
// same machine starts and has its records.
func TestAStartThatFails(t *testing.T) {
	peers := func(m *machine) {
		m.config.Cluster.Peers = []string{"node-1@node-1:7943", "node-2@node-2:7943", "node-3@node-3:7943"}
		m.config.Cluster.Addr = ":7943"
		m.config.Security.AllowPlaintextRaft = true
		m.raft = m.b.t.TempDir()
	}
	hold := func(port string) func(m *machine) func() {
		return func(m *machine) func() {
			l, err := m.host.Listen("tcp", ":"+port)
			require.NoError(m.b.t, err)
			return func() { require.NoError(m.b.t, l.Close()) }
		}
	}
	set := func(change func(m *machine)) func(m *machine) func() {
		return func(m *machine) func() {
			config, secrets, raft := m.config, m.secrets, m.raft
			change(m)
			return func() { m.config, m.secrets, m.raft = config, secrets, raft }
		}
	}
	both := func(a, b func(m *machine) func()) func(m *machine) func() {
		return func(m *machine) func() {
			undoA, undoB := a(m), b(m)
			return func() { undoB(); undoA() }
		}
	}
	for name, c := range map[string]struct {
		breaks func(m *machine) (mend func())
		says   []string
	}{
		"port of the API in use": {hold(apiPort), []string{"http.addr", "7942", "in use"}},
		"port of the metrics in use": {
			both(hold("9100"), set(func(m *machine) { m.config.HTTP.MetricsAddr = ":9100" })), []string{"http.metrics_addr"},
		},
		"port of the profiles in use": {
			both(hold("6060"), set(func(m *machine) { m.config.HTTP.PprofAddr = ":6060" })), []string{"http.pprof_addr"},
		},
		"port of Raft in use":                        {both(hold("7943"), set(peers)), []string{"cluster.addr"}},
		"port of the node RPC in use":                {both(hold("7944"), set(peers)), []string{"cluster.rpc_addr"}},
		"port of the API in use on a cluster's node": {both(hold(apiPort), set(peers)), []string{"http.addr"}},
		"no cluster secret": {
			both(set(peers), set(func(m *machine) { m.secrets.ClusterSecret = "" })), []string{"NARAD_CLUSTER_SECRET"},
		},
		"bad previous secret": {
			set(func(m *machine) { m.secrets.PreviousSecret = "hunter2-hunter2" }), []string{"NARAD_CLUSTER_SECRET_PREVIOUS"},
		},
		"long admin password": {
			set(func(m *machine) { m.secrets.AdminPassword = strings.Repeat("hunter2-", 10) }), []string{"NARAD_ADMIN_PASSWORD"},
		},
		"TLS file missing": {
			set(func(m *machine) {
				m.config.HTTP.TLSCertFile, m.config.HTTP.TLSKeyFile = "/no/such/cert.pem", "/no/such/key.pem"
			}), []string{"http.tls_cert_file", "/no/such/cert.pem"},
		},
		"Raft TLS file missing": {
			set(func(m *machine) {
				peers(m)
				m.config.Cluster.TLSCertFile, m.config.Cluster.TLSKeyFile, m.config.Cluster.TLSCAFile = "/no/c.pem", "/no/k.pem", "/no/ca.pem"
			}), []string{"cluster.tls_cert_file", "/no/c.pem"},
		},
		"another node's folder": {
			set(func(m *machine) { m.config.Cluster.NodeID = "node-9" }), []string{"cluster.node_id", "node-1", "node-9"},
		},
		"no metadata beside topics": {
			set(func(m *machine) { m.raft = m.b.t.TempDir() }), []string{"storage.data_dir", "raft.db"},
		},
		"a broken raft.db on a cluster's node": {
			set(func(m *machine) {
				peers(m)
				require.NoError(m.b.t, os.WriteFile(filepath.Join(m.raft, "raft.db"), []byte(strings.Repeat("no database ", 5000)), 0o600))
			}), []string{"metadata", "Raft log"},
		},
		"a broken raft.db": {breakRaft, []string{"metadata", "Raft log"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				m := b.machine("node-1")
				m.start()
				m.create("orders")
				m.produce("orders", "k", "first")
				m.stop()
				mend := c.breaks(m)
				err := m.tryStart()
				require.Error(t, err)
				for _, want := range c.says {
					require.ErrorContains(t, err, want)
				}
				require.NotContains(t, err.Error(), "\n", "one line")
				require.NotContains(t, err.Error(), "hunter2")
				mend()
				for _, port := range []string{apiPort, "7943", "7944", "9100", "6060"} {
					l, err := m.host.Listen("tcp", ":"+port)
					require.NoError(t, err, "a listener was left on port %s", port)
					require.NoError(t, l.Close())
				}
				m.start()
				m.produce("orders", "k", "second")
				require.Equal(t, []string{"first", "second"}, m.consume("orders", 2))
				m.stop()
			})
		})
	}
}

// breakRaft overwrites both meta pages of the Raft log.
func breakRaft(m *machine) (mend func()) {
	name := filepath.Join(m.raft, "raft.db")
	good, err := os.ReadFile(name)
	require.NoError(m.b.t, err)
	bad := append([]byte(strings.Repeat("no database ", 1000)), good[12000:]...)
	require.NoError(m.b.t, os.WriteFile(name, bad, 0o600))
	return func() {
		after, err := os.ReadFile(name)
		require.NoError(m.b.t, err)
		require.Equal(m.b.t, hex.EncodeToString(bad[:64]), hex.EncodeToString(after[:64]), "nothing was written over it")
		require.NoError(m.b.t, os.WriteFile(name, good, 0o600))
	}
}

// Two nodes never share a folder; the second says who is in the way and the first goes on.
func TestAFolderThatIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m, other := b.machine("node-1"), b.machine("node-2")
		m.start()
		m.create("orders")
		other.disk, other.config.Storage.DataDir = m.disk, m.config.Storage.DataDir
		err := other.tryStart()
		require.ErrorContains(t, err, "storage.data_dir")
		require.ErrorContains(t, err, "held by another process")
		m.produce("orders", "k", "first")
		require.Equal(t, []string{"first"}, m.consume("orders", 1))
		m.stop()
	})
}

// A start that meets a failing disk, at whatever operation, either goes on or says so; the next start is whole.
//
// covers: BRK-04
func TestAStartOnAFailingDisk(t *testing.T) {
	ops := []vfs.Op{vfs.OpOpen, vfs.OpWrite, vfs.OpSync, vfs.OpMkdir, vfs.OpSyncDir, vfs.OpRead, vfs.OpTruncate}
	for _, fresh := range []bool{true, false} {
		for _, op := range ops {
			for _, where := range []string{"", "/ingress", "/topics"} {
				t.Run(fmt.Sprint("fresh ", fresh, " ", op, " ", where), func(t *testing.T) {
					inBubble(t, func(t *testing.T, b *bubble) {
						m := b.machine("node-1")
						if !fresh {
							m.start()
							m.create("orders")
							m.produce("orders", "k", "first")
							m.kill(true)
						}
						m.disk.FailNext(op, syscall.EIO, where)
						if m.tryStart() == nil {
							_ = m.node.Stop(t.Context()) // a last write may fail
							m.node = nil
						}
						if m.disk.Unused() > 0 {
							return // no start does this there
						}
						m.start()
						if fresh {
							m.create("orders")
							m.produce("orders", "k", "first")
						}
						m.produce("orders", "k", "second")
						got := m.consume("orders", 3)
						require.Equal(t, "first", got[0])
						require.Equal(t, "second", got[len(got)-1])
						m.stop()
					})
				})
			}
		}
	}
}
