package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// front is the node's listeners, the servers behind them and the requests they have in hand. A server's own Close leaves its
// handlers running; end waits for them, so that no request meets a room that is closed.
type front struct {
	servers []*http.Server
	addr    net.Addr
	whole   atomic.Bool // the API listens: every room is there

	ctx    context.Context // of every request
	cancel context.CancelFunc

	mu    sync.Mutex // guards what follows
	open  int
	ended bool
	idle  chan struct{} // closed once ended is set and open is 0
}

func newFront() *front {
	f := &front{idle: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// wrap counts the requests of a handler in and out.
func (f *front) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.enter() {
			panic(http.ErrAbortHandler) // the connection is cut already
		}
		defer f.leave()
		h.ServeHTTP(w, r)
	})
}

func (f *front) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.open++
	return true
}

func (f *front) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	if f.ended && f.open == 0 {
		close(f.idle)
	}
}

// shutdown takes no more connections and lets the requests in hand end until ctx does.
func (f *front) shutdown(ctx context.Context) {
	var wg sync.WaitGroup
	for _, s := range f.servers {
		wg.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				_ = s.Close()
			}
		})
	}
	wg.Wait()
}

// end cuts every connection, ends the requests in hand and waits for them.
func (f *front) end() {
	for _, s := range f.servers {
		_ = s.Close()
	}
	f.cancel()
	f.mu.Lock()
	if !f.ended {
		f.ended = true
		if f.open == 0 {
			close(f.idle)
		}
	}
	f.mu.Unlock()
	<-f.idle
}

// wall is the node's wall clock.
func (n *Node) wall() time.Time {
	if n.o.Now == nil {
		return time.Now()
	}
	return n.o.Now()
}

// dated has every answer tell the time of a clock that is not the system's, which net/http would write.
func dated(h http.Handler, now func() time.Time) http.Handler {
	if now == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		h.ServeHTTP(w, r)
	})
}

// listen serves a handler on an address of a setting.
func (n *Node) listen(setting, addr string, handler http.Handler, secure *tls.Config) (net.Addr, error) {
	l, err := n.net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("setting %s: cannot listen on %s: %w", setting, addr, err)
	}
	h := n.cfg.HTTP
	server := &http.Server{
		Handler: n.front.wrap(dated(handler, n.o.Now)), TLSConfig: secure, ReadTimeout: time.Duration(h.ReadTimeout),
		WriteTimeout: time.Duration(h.WriteTimeout), IdleTimeout: time.Duration(h.IdleTimeout), MaxHeaderBytes: h.MaxHeaderBytes,
		ErrorLog:     slog.NewLogLogger(quiet{n.log.Handler()}, slog.LevelDebug),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		BaseContext:  func(net.Listener) context.Context { return n.front.ctx },
	}
	at := l.Addr()
	l = netutil.LimitListener(l, h.MaxConnections)
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	n.front.servers = append(n.front.servers, server)
	n.loops.run(setting, func(context.Context) error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("setting %s: %w", setting, err)
		}
		return nil
	})
	return at, nil
}

// quiet drops the text of net/http's own log lines, which name peers; that one was written is counted by the client's side.
type quiet struct{ slog.Handler }

// Enabled is false: nothing of net/http's goes into the log.
func (quiet) Enabled(context.Context, slog.Level) bool { return false }
