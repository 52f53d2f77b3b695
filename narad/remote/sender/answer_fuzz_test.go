package sender

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

const fuzzedID = "00000000000000aa"

// babbler is a target that says the same bytes to every request and hangs up. Connections are pipes with TLS.
type babbler struct {
	conf   *tls.Config
	says   []byte
	served sync.WaitGroup
}

// dial is its outbound.DialFunc.
func (b *babbler) dial(context.Context, string, string, func(string, string) error) (net.Conn, error) {
	ours, theirs := net.Pipe()
	b.served.Go(func() {
		defer theirs.Close() //nolint:errcheck // a pipe's close has no error
		c := tls.Server(theirs, b.conf)
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if _, err = io.Copy(io.Discard, r.Body); err == nil {
			_, _ = c.Write(b.says) // the client may have hung up before the end
		}
	})
	return ours, nil
}

// selfSigned returns a server's TLS configuration for a name, and what trusts it.
func selfSigned(t testing.TB, name string) (conf *tls.Config, ca string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	conf = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, SessionTicketsDisabled: true}
	return conf, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// FuzzAnswer gives any bytes to the whole client as the answer to a chunk and to a target check.
//
// covers: ANS-19, LOG-01, RUN-10
func FuzzAnswer(f *testing.F) {
	for _, says := range []string{
		"", "\x00", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"accepted\":3}",
		"HTTP/1.1 202 Accepted\r\nContent-Length: 99\r\n\r\n{\"accepted\":3}",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{\"accepted\":3}\r\n0\r\n\r\n",
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 31\r\n\r\n{\"error\":\"message 2: not good\"}\n",
		"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 19\r\n\r\n404 page not found\n",
		"HTTP/1.1 412 Precondition Failed\r\n\r\n{\"error\":\"X-Narad-If-Topic-Id\"}",
		"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-Narad-Request-Id: 0123456789abcdef\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\n\r\n{\"parent\":\"t\",\"parent_id\":\"" + fuzzedID + "\",\"children\":[]}",
		"HTTP/1.1 200 OK\r\n\r\n{\"parent\":\"t\",\"parent_id\":\"aa\",\"children\":[{\"name\":\"x\",\"remote\":\"eu\"}]}",
		"HTTP/1.1 200 OK\r\n\r\n{\"name\":\"t\",\"id\":\"" + fuzzedID + "\",\"parent\":\"t\",\"children\":[]}",
	} {
		f.Add([]byte(says), uint8(3), false)
		f.Add([]byte(says), uint8(1), true)
	}
	conf, ca := selfSigned(f, "target.example")
	guard, err := outbound.NewGuard([]int{443}, nil, nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, says []byte, records uint8, compressed bool) {
		b := &babbler{conf: conf, says: says}
		c, err := outbound.New(outbound.Config{URL: "https://target.example", Authorization: "Basic " + canaryOfFuzz, CAPEM: ca, Guard: guard, Dial: b.dial})
		require.NoError(t, err)
		fuzzedChunk(t, c, int(records)+1, compressed)
		fuzzedCheck(t, c, says)
		c.Close()
		c.Wait()
		b.served.Wait()
	})
}

const canaryOfFuzz = "c4n4ry-of-the-fuzzed-client"

func fuzzedChunk(t *testing.T, c *outbound.Client, records int, compressed bool) {
	q := sent{records: records, compressed: compressed, targetID: fuzzedID, requestID: "fedcba9876543210"}
	r := &outbound.Request{Method: http.MethodPost, Path: "/v1/topics/t/produce/batch", Body: []byte(`{"messages":[]}`), RequestID: q.requestID}
	a, err := c.Do(t.Context(), r)
	if err != nil {
		var failure *outbound.Failure
		require.ErrorAs(t, err, &failure)
		require.NotEqual(t, outbound.Timeout, failure.Class, "the target hung up long ago")
		require.Equal(t, "remote request failed: "+failure.Class.String(), err.Error())
	} else {
		require.LessOrEqual(t, len(a.Body), outbound.MaxAnswerBytes)
	}
	v := classify(q, a, err)
	require.Contains(t, rules, v.row)
	require.Equal(t, rules[v.row], v.rule)
	require.NotEmpty(t, v.action, v.row)
	require.True(t, v.index >= 0 && v.index < records, "index %d of %d", v.index, records)
	require.True(t, v.retryAfter >= 0 && v.retryAfter <= time.Minute, "%v", v.retryAfter)
	if v.effect == aboutAccepted {
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, a.Status)
		require.False(t, a.Truncated)
	}
}

func fuzzedCheck(t *testing.T, c *outbound.Client, says []byte) {
	row, err := target.Check(t.Context(), c, "t", fuzzedID)
	if err == nil {
		require.Contains(t, []string{target.RowNone, target.RowLoop, target.RowReplaced}, row)
		return
	}
	var e *target.Error
	require.ErrorAs(t, err, &e)
	require.Empty(t, row)
	require.Regexp(t, `^target: [a-z_]+( \(status \d+\))?$`, err.Error())
	require.NotEqual(t, wire.UnknownState, e.State, "%q", says)
	require.NotEqual(t, wire.Running, e.State, "%q", says)
	require.True(t, e.RetryAfter >= 0 && e.RetryAfter <= time.Minute, "%v", e.RetryAfter)
}
