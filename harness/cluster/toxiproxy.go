package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	toxiserver "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// toxiproxyServer is toxiproxy in this process. It is served through a listener of ours, because its own Listen neither tells
// the port nor fails loudly.
type toxiproxyServer struct {
	api  *toxiserver.ApiServer
	http *http.Server
	addr string
	done chan struct{}
}

// startToxiproxy serves toxiproxy's API on address.
func startToxiproxy(address string) (*toxiproxyServer, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // the bandwidth toxic writes to the global logger
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("toxiproxy: %w", err)
	}
	s := &toxiproxyServer{
		api:  toxiserver.NewServer(toxiserver.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop()),
		addr: ln.Addr().String(), done: make(chan struct{}),
	}
	s.http = &http.Server{Handler: s.api.Routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(ln) // always http.ErrServerClosed: close is the only end
	}()
	return s, nil
}

// close ends every proxy with its connections, then the API.
func (s *toxiproxyServer) close() error {
	err := errors.Join(s.api.Collection.Clear(), s.http.Close())
	<-s.done
	return err
}

// RunToxiproxy serves toxiproxy's API on address until ctx ends: the link's container.
func RunToxiproxy(ctx context.Context, address string) error {
	s, err := startToxiproxy(address)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return s.close()
}
