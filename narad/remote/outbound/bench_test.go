package outbound

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func BenchmarkChunk(b *testing.B) {
	ca := newAuthority(b)
	leaf := ca.leaf(b, time.Now().Add(time.Hour), "127.0.0.1")
	r := newRig(b, ca, &tls.Config{Certificates: []tls.Certificate{leaf}}, func(c net.Conn) { answerAll(c, "HTTP/1.1 202 x\r\nContent-Length: 14\r\n\r\n{\"accepted\":1}") })
	c := r.client()
	body := bytes.Repeat([]byte("x"), 960<<10)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := c.Do(b.Context(), &Request{Method: "POST", Path: "/v1/topics/a/produce/batch", Body: body, RequestID: "00000000000000aa"})
		require.NoError(b, err)
	}
}
