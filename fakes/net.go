package fakes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Net is how tap and fake reach the world. The zero value is the operating system's network.
type Net struct {
	Listen func(network, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

func (n Net) listen(address string) (net.Listener, error) {
	if n.Listen != nil {
		return n.Listen("tcp", address)
	}
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
}

func (n Net) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.Dial != nil {
		return n.Dial(ctx, network, address)
	}
	return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
}

// server is an HTTP server with its listener and the goroutine that serves it.
type server struct {
	http  *http.Server
	ln    net.Listener
	faces *faces // of a TLS edge, nil without TLS
	done  chan struct{}

	wg     sync.WaitGroup // the handlers, which close waits for
	mu     sync.Mutex     // guards closed, so that no handler starts while close waits
	closed bool
}

type connKey struct{}

// start serves h on address; with t over TLS, which can show the faces that certs has.
func (n Net) start(address string, t *tls.Config, certs map[string]Cert, h http.Handler) (*server, error) {
	ln, err := n.listen(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &server{ln: ln, done: make(chan struct{})}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handle(h, w, r) }),
		ReadHeaderTimeout: 30 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	serve := ln
	if t != nil {
		if s.faces, err = newFaces(ln, t, certs); err != nil {
			return nil, errors.Join(err, ln.Close())
		}
		serve = s.faces
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(serve) // always http.ErrServerClosed: Close is the only end
	}()
	return s, nil
}

func (s *server) handle(h http.Handler, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok && s.faces != nil {
		s.faces.served(c)
	}
	h.ServeHTTP(w, r)
}

// addr is where the server listens.
func (s *server) addr() string { return s.ln.Addr().String() }

// close cuts every connection and waits for handlers and loop.
func (s *server) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.http.Close()
	<-s.done
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// reset ends the connection of r at once and without a TLS goodbye. On TCP the peer sees a reset, elsewhere an end.
func reset(r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	c = bare(c)
	raw := c
	if f, isFaced := c.(*faced); isFaced {
		raw = f.Conn
	}
	if tcp, isTCP := raw.(*net.TCPConn); isTCP {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
	panic(http.ErrAbortHandler)
}

// wait sleeps for d, or less when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
