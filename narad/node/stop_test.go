package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/vfs"
)

// A client that stops in the middle of its request holds a stop up for the grace and no longer.
func TestAStopWithAHangingClient(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		conn, err := b.net.Host("client").Dial(t.Context(), "tcp", "node-1:"+apiPort, nil)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST /v1/topics/orders/produce HTTP/1.1\r\nHost: node-1\r\nAuthorization: Basic YWRtaW46YzRuNHJ5LWFkbWluLXBhc3N3b3Jk\r\n"+
			"Content-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nhalf")
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		m.stop()
		require.LessOrEqual(t, time.Since(began), time.Duration(m.config.HTTP.ShutdownGrace)+time.Second)
		require.NoError(t, conn.Close())
		m.start()
		require.Zero(t, m.count("orders"))
		m.stop()
	})
}

// A consumer that waits when the node is stopped gets its answer, and the node is not ready meanwhile and takes nothing in.
func TestAStopLetsAConsumerFinish(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.config.HTTP.MetricsAddr = ":9100"
		m.start()
		m.create("orders")
		var waiting sync.WaitGroup
		waiting.Go(func() {
			msg, err := m.client().Consume(t.Context(), "orders", client.ConsumeOptions{Wait: 5 * time.Second})
			require.NoError(t, err)
			require.Nil(t, msg)
		})
		time.Sleep(time.Second)
		began := time.Now()
		m.stop()
		waiting.Wait()
		require.InDelta(t, 4, time.Since(began).Seconds(), 1)
	})
}

// Records that cannot be dispatched make a stop wait for the grace; then they wait in the WAL, and the next start has them.
//
// covers: BRK-04
func TestADrainThatCannotFinish(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		m.produce("orders", "k", "first")
		b.eventually("committed", func() bool { return m.count("orders") == 1 })
		m.disk.FailNext(vfs.OpSync, syscall.EIO, "/topics/")
		m.produce("orders", "k", "second")
		time.Sleep(time.Second)
		status, body := m.get("/readyz", false)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"status":"ready","degraded":"1 partitions take no records until the next start"}`, body)
		began := time.Now()
		var stopped sync.WaitGroup
		stopped.Go(func() { m.stop() })
		time.Sleep(time.Second)
		status, body = m.get("/healthz", false)
		require.Equal(t, http.StatusServiceUnavailable, status, body)
		status, _ = m.get("/readyz", false)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.ErrorContains(t, m.client().Produce(t.Context(), "orders", []byte("x"), client.ProduceOptions{}), "503")
		stopped.Wait()
		require.LessOrEqual(t, time.Since(began), time.Duration(m.config.HTTP.ShutdownGrace)+time.Second)
		warned := m.log.with("stopped before every accepted record was dispatched; they wait in the ingress WAL")
		require.Len(t, warned, 1)
		require.EqualValues(t, 1, warned[0]["records"])
		m.start()
		require.Equal(t, []string{"first", "second"}, m.consume("orders", 2))
		m.stop()
	})
}

// A stop whose own context has ended does not wait for the grace.
func TestAStopWithoutTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		m.disk.FailNext(vfs.OpSync, syscall.EIO, "/topics/")
		m.produce("orders", "k", "first")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		began := time.Now()
		require.NoError(t, m.node.Stop(ctx))
		m.node = nil
		require.Less(t, time.Since(began), time.Second)
		m.start()
		require.Equal(t, []string{"first"}, m.consume("orders", 1))
		m.stop()
	})
}

// A WAL that has failed takes no records until the next start, and the node says so; nothing that was acknowledged is gone.
//
// covers: BRK-13, BRK-04
func TestAFailedWALIsNotReady(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		m.produce("orders", "k", "first")
		m.disk.FailNext(vfs.OpSync, syscall.EIO, "/ingress/")
		err := m.client().Produce(t.Context(), "orders", []byte("second"), client.ProduceOptions{})
		require.ErrorContains(t, err, "500")
		status, body := m.get("/readyz", false)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.NotContains(t, body, "/node-1", "the cause is for the log")
		_, page := m.get("/metrics", true)
		require.Contains(t, page, "narad_ingress_wal_failed 1\n")
		require.Equal(t, []string{"first"}, m.consume("orders", 1), "consumers go on")
		m.stop()
		m.start()
		status, _ = m.get("/readyz", false)
		require.Equal(t, http.StatusOK, status)
		m.produce("orders", "k", "third")
		m.stop()
	})
}

// A part that ends by itself is logged, kept, and makes the node not ready.
//
// covers: BRK-13
func TestAPartThatEndsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		require.NoError(t, m.node.Failure())
		_, err := m.node.Ready(t.Context())
		require.NoError(t, err)
		m.host.Cut() // closes the listener under the server
		synctest.Wait()
		require.ErrorContains(t, m.node.Failure(), "setting http.addr")
		_, err = m.node.Ready(t.Context())
		require.Error(t, err)
		require.Len(t, m.log.with("a part of the node ended by itself; the node is not ready until it is started again"), 1)
		require.NoError(t, m.node.Stop(t.Context()))
		m.node = nil
	})
}

// A torn tail, of the WAL or of a partition, is cut and logged, and nothing acknowledged was in it.
func TestATornTailIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		for i := range 9 {
			m.produce("orders", fmt.Sprint(i), id("r", i))
		}
		b.eventually("committed", func() bool { return m.count("orders") == 9 })
		m.kill(false)
		torn := 0
		for _, dir := range m.dirs("/node-1") {
			files, err := m.disk.ReadDir(dir)
			require.NoError(t, err)
			for _, f := range files {
				if f.IsDir() || !strings.HasSuffix(f.Name(), ".log") {
					continue
				}
				file, err := m.disk.OpenFile(dir+"/"+f.Name(), syscall.O_RDWR, 0)
				require.NoError(t, err)
				size, err := file.Size()
				require.NoError(t, err)
				_, err = file.WriteAt([]byte("torn"), size)
				require.NoError(t, err)
				require.NoError(t, file.Close())
				torn++
			}
		}
		require.GreaterOrEqual(t, torn, 2)
		m.start()
		require.Equal(t, 9, m.count("orders"))
		require.Len(t, m.log.with("the ingress WAL ended in a torn write that nobody was answered for; it was cut and a copy kept beside it"), 1)
		require.Len(t, m.log.with("a partition ended in a torn write that nobody was answered for; it was cut and a copy kept beside it"), torn-1)
		m.stop()
	})
}

// dirs lists a folder and every folder below it. The node works on: a folder that goes during the walk is not listed.
func (m *machine) dirs(root string) []string {
	list, err := m.disk.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(m.b.t, err)
	out := []string{root}
	for _, d := range list {
		if d.IsDir() {
			out = append(out, m.dirs(root+"/"+d.Name())...)
		}
	}
	return out
}

// Requests in hand when a node is killed end before Kill returns: none meets a room that is closed.
func TestAKillEndsTheRequestsInHand(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		var waiting sync.WaitGroup
		for range 8 {
			waiting.Go(func() {
				_, err := m.client().Consume(t.Context(), "orders", client.ConsumeOptions{Wait: 9 * time.Second})
				require.Error(t, err)
			})
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		m.kill(false)
		waiting.Wait()
		require.Less(t, time.Since(began), time.Second)
		res, err := b.http.Get("http://node-1:" + apiPort + "/healthz")
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		require.Error(t, err)
		require.NotContains(t, m.log.String(), "panic")
	})
}

// A deleted topic whose files cannot be removed is tried again without any other change.
//
// covers: BRK-09
func TestFilesOfADeletedTopicAreTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		old := m.create("orders")
		m.produce("orders", "k", "first")
		b.eventually("committed", func() bool { return m.count("orders") == 1 })
		m.disk.FailNext(vfs.OpRemove, syscall.EIO, old.ID)
		require.NoError(t, m.client().DeleteTopic(t.Context(), "orders", false))
		time.Sleep(10 * time.Second)
		require.Contains(t, m.dirs("/node-1"), "/node-1/topics/"+old.ID)
		b.eventually("they go", func() bool { return !slices.Contains(m.dirs("/node-1"), "/node-1/topics/"+old.ID) })
		m.stop()
	})
}

// A certificate that was replaced on disk is served to new connections without a restart; broken files leave the old one.
func TestTheCertificateIsReadAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		first := m.serveTLS()
		m.start()
		_, err := m.client().Topics(t.Context(), 1, "")
		require.NoError(t, err)
		files := m.config.HTTP
		certFile, keyFile := files.TLSCertFile, files.TLSKeyFile
		b.http.CloseIdleConnections()
		require.NoError(t, os.WriteFile(certFile, []byte("no certificate"), 0o600))
		require.NoError(t, os.Chtimes(certFile, time.Now(), time.Now().Add(time.Hour)))
		time.Sleep(time.Minute)
		_, err = m.client().Topics(t.Context(), 1, "")
		require.NoError(t, err, "the old one goes on")
		second := m.serveTLS() // in files of its own, and trusted alone
		require.NotEqual(t, first, second)
		for from, to := range map[string]string{m.config.HTTP.TLSCertFile: certFile, m.config.HTTP.TLSKeyFile: keyFile} {
			var raw []byte
			raw, err = os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, raw, 0o600))
			require.NoError(t, os.Chtimes(to, time.Now(), time.Now().Add(2*time.Hour)))
		}
		b.http.CloseIdleConnections()
		time.Sleep(time.Minute)
		_, err = m.client().Topics(t.Context(), 1, "")
		require.NoError(t, err)
		m.stop()
	})
}
