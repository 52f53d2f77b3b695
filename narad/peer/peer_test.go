package peer

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"narad.example/narad/wire"
)

const secret = "dGhlIHNlY3JldCBvZiB0aGlzIGNsdXN0ZXIgaXMgbG9uZw=="

// world is one server at "a" in a bubble, and a client.
type world struct {
	net    *network
	server *Server
	client *Client
	calls  atomic.Int32
	end    func()
}

func newWorld(clientSecret string, more ...func(*Server)) *world {
	w := &world{net: newNetwork()}
	w.server = NewServer(ServerOptions{Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	w.server.Handle("Echo", func(_ context.Context, body []byte) ([]byte, error) {
		w.calls.Add(1)
		return body, nil
	})
	for _, m := range more {
		m(w.server)
	}
	var running sync.WaitGroup
	l := w.net.listen("a")
	running.Go(func() { _ = w.server.Serve(l) })
	w.client = NewClient(ClientOptions{Secret: clientSecret, Dial: w.net.dial})
	w.end = func() { w.client.Close(); w.server.Close(); running.Wait() }
	return w
}

func inBubble(t *testing.T, clientSecret string, test func(t *testing.T, w *world), more ...func(*Server)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(clientSecret, more...)
		defer w.end()
		test(t, w)
	})
}

func TestCallsShareOneConnection(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		big := strings.Repeat("x", 9<<20)
		for _, body := range []string{"", `{"a":1}`, big} {
			got, err := w.client.Call(t.Context(), "a", "Echo", []byte(body))
			require.NoError(t, err)
			require.Equal(t, sha256.Sum256([]byte(body)), sha256.Sum256(got))
		}
		require.Equal(t, 1, w.net.dials)
	})
}

// covers: WRT-08
func TestAnUnknownOp(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		_, err := w.client.Call(t.Context(), "a", "RemoteWrite", nil)
		require.ErrorIs(t, err, ErrUnknownOp)
		require.Equal(t, codes.Unimplemented, status.Code(err))
	})
}

func TestAProblemSurvives(t *testing.T) {
	sent := wire.Refuse(wire.Conflict, "in use").With("links", []string{"p/c"}).With("lag", int64(1)<<60).After(2 * time.Second)
	inBubble(t, secret, func(t *testing.T, w *world) {
		_, err := w.client.Call(t.Context(), "a", "Refuse", nil)
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, wire.Conflict, p.Kind)
		require.Equal(t, "in use", p.Text)
		require.Equal(t, 2*time.Second, p.RetryAfter)
		fields, err := json.Marshal(p.Fields)
		require.NoError(t, err)
		require.JSONEq(t, `{"links":["p/c"],"lag":1152921504606846976}`, string(fields))

		_, err = w.client.Call(t.Context(), "a", "Fail", nil)
		require.Equal(t, codes.Internal, status.Code(err))
		require.NotContains(t, err.Error(), "inner")
		require.NotErrorIs(t, err, ErrUnreachable)
	}, func(s *Server) {
		s.Handle("Refuse", func(context.Context, []byte) ([]byte, error) { return nil, sent })
		s.Handle("Fail", func(context.Context, []byte) ([]byte, error) { return nil, errors.New("inner trouble") })
	})
}

func TestAWrongSecret(t *testing.T) {
	inBubble(t, "bm90IHRoZSBzZWNyZXQgb2YgdGhpcyBjbHVzdGVyIGF0IGFsbA==", func(t *testing.T, w *world) {
		_, err := w.client.Call(t.Context(), "a", "Echo", []byte("data"))
		require.ErrorIs(t, err, ErrSecret)
		require.ErrorIs(t, err, ErrUnreachable)
		require.Contains(t, err.Error(), "NARAD_CLUSTER_SECRET")
		require.Zero(t, w.calls.Load(), "data flowed")
	})
}

func TestWithoutASecretNothingRuns(t *testing.T) {
	n := newNetwork()
	s := NewServer(ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, s.Serve(n.listen("a")), ErrNoSecret)
	s.Close()
	c := NewClient(ClientOptions{Dial: n.dial})
	_, err := c.Call(t.Context(), "a", "Echo", nil)
	require.ErrorIs(t, err, ErrNoSecret)
	c.Close()
}

// A man in the middle who ends TLS on both sides sees every byte and passes the proofs on. They are bound to the two sessions, so
// neither end takes the other's.
func TestAForwardedProofIsWorthless(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		cert, err := throwAway()
		require.NoError(t, err)
		front := w.net.listen("middle")
		var running sync.WaitGroup
		var seen atomic.Int64 // bytes beyond the proof that the victim sent
		running.Go(func() {
			for {
				c, failed := front.Accept()
				if failed != nil {
					return
				}
				running.Go(func() { seen.Add(forward(t.Context(), w, c, cert)) })
			}
		})
		_, err = w.client.Call(t.Context(), "middle", "Echo", []byte("data"))
		require.ErrorIs(t, err, ErrSecret)
		require.NoError(t, front.Close())
		running.Wait()
		require.Zero(t, seen.Load())
		require.Zero(t, w.calls.Load())

		_, err = w.client.Call(t.Context(), "a", "Echo", nil)
		require.NoError(t, err, "the straight way works")
	})
}

// forward relays the client's proof to the server and the answer back, and counts what the client sends after that.
func forward(ctx context.Context, w *world, victim net.Conn, cert tls.Certificate) int64 {
	defer func() { _ = victim.Close() }()
	in := tls.Server(victim, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	backend, err := w.net.dial(ctx, "a")
	if err != nil {
		return 0
	}
	defer func() { _ = backend.Close() }()
	out := tls.Client(backend, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	proof := make([]byte, sha256.Size)
	if _, err = io.ReadFull(in, proof); err != nil {
		return 0
	}
	if _, err = out.Write(proof); err != nil {
		return 0
	}
	answer := make([]byte, 1+sha256.Size)
	if _, err = io.ReadFull(out, answer); err != nil {
		return 0
	}
	answer[0] = accepted // what an attacker would rather have it say
	if _, err = in.Write(answer); err != nil {
		return 0
	}
	n, _ := io.Copy(io.Discard, in)
	return n
}

// A proof that was recorded in one session does not open another, nor does the server's own proof sent back to it.
func TestARecordedProofIsWorthless(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		open := func(first func(c *tls.Conn) []byte) byte {
			backend, err := w.net.dial(t.Context(), "a")
			require.NoError(t, err)
			defer func() { _ = backend.Close() }()
			c := tls.Client(backend, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
			require.NoError(t, c.HandshakeContext(t.Context()))
			_, err = c.Write(first(c))
			require.NoError(t, err)
			answer := make([]byte, 1+sha256.Size)
			_, err = io.ReadFull(c, answer)
			require.NoError(t, err)
			return answer[0]
		}
		var recorded []byte
		require.Equal(t, accepted, open(func(c *tls.Conn) []byte {
			p, err := prove([]byte(secret), roleClient, c)
			require.NoError(t, err)
			recorded = p
			return p
		}), "a true proof")
		require.Equal(t, refused, open(func(*tls.Conn) []byte { return recorded }), "replayed")
		require.Equal(t, refused, open(func(c *tls.Conn) []byte {
			p, err := prove([]byte(secret), roleServer, c)
			require.NoError(t, err)
			return p
		}), "the other role's proof")
	})
}

func TestASilentPeerDoesNotHoldTheHandshake(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		start := time.Now()
		silent, err := w.net.dial(t.Context(), "a")
		require.NoError(t, err)
		_, err = silent.Read(make([]byte, 1))
		require.Error(t, err, "the server hangs up")
		require.Equal(t, handshakeTimeout, time.Since(start))

		held := w.net.listen("b") // takes connections and says nothing
		var running sync.WaitGroup
		running.Go(func() {
			for {
				c, failed := held.Accept()
				if failed != nil {
					return
				}
				running.Go(func() { _, _ = io.Copy(io.Discard, c) })
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start = time.Now()
		_, err = w.client.Call(ctx, "b", "Echo", nil)
		require.ErrorIs(t, err, ErrUnreachable)
		require.Equal(t, 3*time.Second, time.Since(start))
		w.client.Close()
		require.NoError(t, held.Close())
		running.Wait()
	})
}

func TestACallHasADeadlineAndIsNotSentAgain(t *testing.T) {
	var hung atomic.Int32
	inBubble(t, secret, func(t *testing.T, w *world) {
		start := time.Now()
		_, err := w.client.Call(t.Context(), "a", "Hang", nil)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.NotErrorIs(t, err, ErrUnreachable, "the outcome is unknown")
		require.Equal(t, 10*time.Second, time.Since(start))
		synctest.Wait()
		require.Equal(t, int32(1), hung.Load())

		done := make(chan error)
		go func() {
			_, failed := w.client.Call(context.Background(), "a", "Hang", nil)
			done <- failed
		}()
		synctest.Wait()
		w.server.Close()
		require.NotErrorIs(t, <-done, ErrUnreachable, "a cut call may have run")
		_, err = w.client.Call(t.Context(), "a", "Echo", nil)
		require.ErrorIs(t, err, ErrUnreachable)
		require.NotErrorIs(t, err, ErrSecret)
	}, func(s *Server) {
		s.Handle("Hang", func(ctx context.Context, _ []byte) ([]byte, error) {
			hung.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
}

// A patient call reaches a node that has come back since the last try to connect; one that stays away costs it its time, and why is told.
//
// covers: BRK-07, WRT-03
func TestAPatientCall(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		for moment := range 10 { // between two tries to connect
			addr := fmt.Sprint("c", moment)
			echo := func(wait time.Duration) error {
				ctx, cancel := context.WithTimeout(Patient(t.Context()), wait)
				defer cancel()
				_, err := w.client.Call(ctx, addr, "Echo", nil)
				return err
			}
			began := time.Now()
			require.ErrorIs(t, echo(2*time.Second), ErrUnreachable)
			require.Equal(t, 2*time.Second, time.Since(began))
			time.Sleep(time.Minute + time.Duration(moment)*300*time.Millisecond)
			late := NewServer(ServerOptions{Secret: secret, Logger: slog.New(slog.DiscardHandler)})
			late.Handle("Echo", func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
			var running sync.WaitGroup
			l := w.net.listen(addr)
			running.Go(func() { _ = late.Serve(l) })
			require.NoError(t, echo(1300*time.Millisecond), "it is tried once a second, give or take a fifth")
			late.Close()
			running.Wait()
		}
	})
	inBubble(t, "another secret that is long enough for it", func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(Patient(t.Context()), 2*time.Second)
		defer cancel()
		_, err := w.client.Call(ctx, "a", "Echo", nil)
		require.ErrorIs(t, err, ErrSecret)
	})
}

func TestAPeerThatComesBackIsReachedSoon(t *testing.T) {
	inBubble(t, secret, func(t *testing.T, w *world) {
		_, err := w.client.Call(t.Context(), "c", "Echo", nil)
		require.ErrorIs(t, err, ErrUnreachable)
		time.Sleep(time.Minute)
		late := NewServer(ServerOptions{Secret: secret, Logger: slog.New(slog.DiscardHandler)})
		late.Handle("Echo", func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
		var running sync.WaitGroup
		l := w.net.listen("c")
		running.Go(func() { _ = late.Serve(l) })
		time.Sleep(3 * time.Second)
		_, err = w.client.Call(t.Context(), "c", "Echo", nil)
		require.NoError(t, err)
		late.Close()
		running.Wait()
	})
}
