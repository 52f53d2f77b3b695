package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/narad/client"
	"narad.example/narad/config"
	"narad.example/narad/node"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// three is a source of three nodes over the network in memory.
type three struct {
	net   *Network
	nodes []*node.Node
	http  *http.Client
}

func startThree(t *testing.T) *three {
	t.Helper()
	c := &three{net: NewNetwork()}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.net.Host("harness").Dial(ctx, network, addr, nil)
		},
	}}
	dir := t.TempDir()
	secrets := config.Secrets{AdminPassword: "admin-password-of-a-test", ClusterSecret: encodePadded(SeededSecrets(1)("cluster"))}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		c.net.Host(name)
		cfg := config.Default()
		cfg.Cluster.NodeID, cfg.Cluster.Peers = name, []string{"n1@n1:7943", "n2@n2:7943", "n3@n3:7943"}
		cfg.Security.AllowPlaintextRaft = true
		cfg.Remotes.APIHopEncrypted = true
		cfg.Storage.DataDir = "/" + name
		require.NoError(t, cfg.Validate())
		n, err := node.Start(t.Context(), node.Options{
			Config: cfg, Secrets: secrets, Network: c.net.Host(name), FS: vfs.NewMem(), RaftDir: filepath.Join(dir, name), Fast: true,
			Seed: uint64(i + 1), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		require.NoError(t, err)
		c.nodes = append(c.nodes, n)
	}
	return c
}

func (c *three) client(i int) *client.Client {
	return client.New(client.Options{
		BaseURL: fmt.Sprintf("http://n%d:7942", i+1), User: "admin", Password: "admin-password-of-a-test", HTTP: c.http,
	})
}

func (c *three) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	for _, n := range c.nodes {
		require.NoError(t, n.Stop(ctx))
	}
	c.http.CloseIdleConnections()
	c.net.Close()
}

// eventually polls in virtual time and reports what it saw last.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var err error
	for range 600 {
		if err = ok(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.NoError(t, err, "%s within a minute", what)
}

// TestWhatAFollowerWritesIsOnAllThree proves that more than one voter can follow: three nodes elect a leader, and a topic, a
// user and a remote that a follower took are visible on it when it answers, and on the others soon after.
//
// covers: BRK-06, WRT-01
func TestWhatAFollowerWritesIsOnAllThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startThree(t)
		defer c.stop(t)
		ctx := t.Context()
		for i := range 3 {
			eventually(t, "ready", func() error { _, err := c.client(i).Ready(ctx); return err })
		}
		ca, err := fakes.NewCA(time.Now())
		require.NoError(t, err)
		for i := range 3 { // one of the three leads, two follow; each takes every kind of write
			topic, user, remote := fmt.Sprintf("topic-%d", i), fmt.Sprintf("user-%d", i), fmt.Sprintf("remote-%d", i)
			_, err := c.client(i).CreateTopic(ctx, wire.CreateTopic{Name: topic})
			require.NoError(t, err)
			_, err = c.client(i).Topic(ctx, topic, nil)
			require.NoError(t, err, "visible on the node that answered")
			_, err = c.client(i).Users().Create(ctx, wire.CreateUser{Username: user, Password: "a-password"})
			require.NoError(t, err)
			_, err = c.client(i).Remotes().Create(ctx, wire.CreateRemote{
				Name: remote, URL: "https://target-" + remote, Username: "link", Password: "a-password-of-24-characters", CAPEM: ca.PEM(),
			})
			require.NoError(t, err)
			for j := range 3 {
				eventually(t, fmt.Sprintf("written through n%d, read on n%d", i+1, j+1), func() error {
					if _, err := c.client(j).Topic(ctx, topic, nil); err != nil {
						return err
					}
					if _, err := c.client(j).Users().Get(ctx, user); err != nil {
						return err
					}
					_, err := c.client(j).Remotes().Get(ctx, remote, false)
					return err
				})
			}
		}
	})
}
