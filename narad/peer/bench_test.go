package peer

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkAnswers is how fast answers of 4 MiB, which a move of a partition is made of, come over a connection of its own on loopback.
func BenchmarkAnswers(b *testing.B) {
	body := make([]byte, 4<<20)
	server := NewServer(ServerOptions{Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	server.Handle("Read", func(context.Context, []byte) ([]byte, error) { return body, nil })
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) })
	client := NewClient(ClientOptions{Secret: secret, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}})
	defer func() { client.Close(); server.Close(); running.Wait() }()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		got, err := client.Call(b.Context(), l.Addr().String(), "Read", nil)
		require.NoError(b, err)
		require.Len(b, got, len(body))
	}
}
