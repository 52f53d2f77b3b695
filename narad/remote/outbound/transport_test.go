package outbound

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readRequest reads one request whole.
func readRequest(br *bufio.Reader) (*http.Request, []byte, error) {
	req, err := http.ReadRequest(br)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(req.Body)
	return req, body, err
}

func answerAll(c net.Conn, answer string) {
	br := bufio.NewReader(c)
	for {
		if _, _, err := readRequest(br); err != nil {
			return
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

func post(t *testing.T, c *Client, n int) (*Answer, error) {
	t.Helper()
	return c.Do(t.Context(), &Request{Method: "POST", Path: "/v1/topics/a/produce/batch", Body: bytes.Repeat([]byte("x"), n), RequestID: "00000000000000aa"})
}

func TestTheRequestOnTheWire(t *testing.T) {
	type seen struct {
		req  *http.Request
		body []byte
	}
	got := make(chan seen, 2)
	r := good(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			req, body, err := readRequest(br)
			if err != nil {
				return
			}
			got <- seen{req, body}
			_, _ = io.WriteString(c, "HTTP/1.1 202 Accepted\r\nX-Narad-Request-Id: "+req.Header.Get("X-Narad-Request-Id")+"\r\nContent-Length: 14\r\n\r\n{\"accepted\":1}")
		}
	})
	c := r.client(func(conf *Config) { conf.URL += "/base" })
	body := bytes.Repeat([]byte("0123456789"), 98_304)
	ans, err := c.Do(t.Context(), &Request{
		Method: "POST", Path: "/v1/topics/a%2Fb/produce/batch?x=1", Body: body, ContentEncoding: "zstd", RequestID: "00112233445566aa",
		Header: http.Header{"X-Narad-If-Topic-Id": {"ffffffffffffffff"}},
	})
	require.NoError(t, err)
	require.Equal(t, 202, ans.Status)
	require.JSONEq(t, `{"accepted":1}`, string(ans.Body))
	require.False(t, ans.Early)
	require.False(t, ans.CertNotAfter.IsZero())
	s := <-got
	require.Equal(t, "/base/v1/topics/a%2Fb/produce/batch?x=1", s.req.RequestURI)
	require.True(t, bytes.Equal(body, s.body))
	require.EqualValues(t, len(body), s.req.ContentLength)
	require.Equal(t, strings.TrimPrefix(r.url(), "https://"), s.req.Host)
	for name, want := range map[string]string{
		"Authorization": "Basic " + canary, "Content-Type": "application/json", "Content-Encoding": "zstd", "X-Narad-Request-Id": "00112233445566aa",
		"X-Narad-If-Topic-Id": "ffffffffffffffff", "X-Narad-Client": "narad-remote", "Accept": "application/json", "Accept-Encoding": "", "Expect": "", "Transfer-Encoding": "",
	} {
		require.Equal(t, want, s.req.Header.Get(name), name)
	}
	_, err = c.Do(t.Context(), &Request{Method: "GET", Path: "/v1/topics/a", Anonymous: true})
	require.NoError(t, err)
	s = <-got
	require.Empty(t, s.req.Header.Values("Authorization"))
	require.Empty(t, s.req.Header.Values("Content-Length"))
	require.EqualValues(t, 1, r.accepted.Load(), "one connection for both")
	for _, bad := range []Request{
		{Method: "GET", Path: "/ x"}, {Method: "GET", Path: "x"}, {Method: "GET /", Path: "/"}, {Method: "GET", Path: "/\r\nA: b"}, {Method: "", Path: "/"},
		{Method: "GET", Path: "/", RequestID: "a\r\nb"}, {Method: "GET", Path: "/", Header: http.Header{"A b": {"c"}}}, {Method: "GET", Path: "/", Header: http.Header{"A": {"c\n"}}},
	} {
		_, err := c.Do(t.Context(), &bad)
		require.Equal(t, Malformed, failure(t, err).Class)
	}
}

// covers: ANS-19
func TestAnswersThatNeverEndAreBounded(t *testing.T) {
	junk := strings.Repeat("x", 32<<10)
	for name, tc := range map[string]struct {
		head, repeat string
		class        FailureClass // 0: an answer, truncated
	}{
		"until close":       {"HTTP/1.1 500 " + canary + "\r\n\r\n", junk, 0},
		"huge length":       {"HTTP/1.1 500 x\r\nContent-Length: 99999999999\r\n\r\n", junk, 0},
		"chunks":            {"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n", "8000\r\n" + junk + "\r\n", 0},
		"tiny chunks":       {"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("1;"+strings.Repeat("e", 200)+"\r\nx\r\n", 100), Malformed},
		"header":            {"HTTP/1.1 500 x\r\nA: ", junk, Malformed},
		"headers":           {"HTTP/1.1 500 x\r\n", strings.Repeat("A: b\r\n", 1000), Malformed},
		"status line":       {"HTTP/1.1 500 ", junk, Malformed},
		"interim answers":   {"", "HTTP/1.1 103 Early\r\n\r\n", Malformed},
		"garbage":           {"SSH-2.0-" + canary + "\r\n", "", Malformed},
		"HTTP/2":            {"\x00\x00\x12\x04\x00\x00\x00\x00\x00\r\n\r\n", "", Malformed},
		"nothing":           {"", "", Unreachable},
		"half a header":     {"HTTP/1.1 200 OK\r\nContent-", "", Unreachable},
		"half a body":       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", "", Unreachable},
		"half a chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12", "", Unreachable},
		"another's ID":      {"HTTP/1.1 202 OK\r\nX-Narad-Request-Id: 00000000000000bb\r\nContent-Length: 14\r\n\r\n{\"accepted\":1}", "", Malformed},
		"switching":         {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", junk, 101},
		"no body on a 204":  {"HTTP/1.1 204 x\r\n\r\n", "", 204},
		"after one interim": {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n", "", 202},
	} {
		t.Run(name, func(t *testing.T) {
			r := good(t, func(c net.Conn) {
				if _, _, err := readRequest(bufio.NewReader(c)); err != nil {
					return
				}
				_, err := io.WriteString(c, tc.head)
				for err == nil && tc.repeat != "" {
					_, err = io.WriteString(c, tc.repeat)
				}
			})
			ans, err := post(t, r.client(), 10)
			switch {
			case tc.class > Canceled:
				require.NoError(t, err)
				require.EqualValues(t, tc.class, ans.Status)
			case tc.class == 0:
				require.NoError(t, err)
				require.True(t, ans.Truncated)
				require.LessOrEqual(t, len(ans.Body), MaxAnswerBytes)
			default:
				f := failure(t, err)
				require.Equal(t, tc.class, f.Class)
				require.True(t, f.UploadBegan)
				require.False(t, f.UploadCut)
			}
			require.EqualValues(t, 1, r.accepted.Load(), "never sent twice")
		})
	}
}

// covers: NET-07, ANS-18
func TestARequestIsNeverSentTwice(t *testing.T) {
	var requests atomic.Int64
	r := good(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		for n := 0; ; n++ {
			if _, _, err := readRequest(br); err != nil {
				return
			}
			requests.Add(1)
			if n == 1 {
				return // read whole, then cut without an answer
			}
			_, _ = io.WriteString(c, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := r.client()
	_, err := post(t, c, 1000)
	require.NoError(t, err)
	_, err = post(t, c, 1000)
	f := failure(t, err)
	require.Equal(t, Unreachable, f.Class)
	require.True(t, f.UploadBegan)
	require.EqualValues(t, 2, requests.Load())
	_, err = post(t, c, 1000)
	require.NoError(t, err)
	require.EqualValues(t, 3, requests.Load())
	require.EqualValues(t, 2, r.accepted.Load())
}

func TestAnEndedIdleConnectionCostsNoRequest(t *testing.T) {
	var requests atomic.Int64
	r := good(t, func(c net.Conn) {
		if _, _, err := readRequest(bufio.NewReader(c)); err != nil {
			return
		}
		requests.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n") // and closes without having said so
	})
	c := r.client()
	for range 5 {
		_, err := post(t, c, 10)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return c.Idle() == 0 }, 5*time.Second, time.Millisecond)
	}
	require.EqualValues(t, 5, requests.Load())
}

// covers: LOG-01
func TestBytesThatComeUnasked(t *testing.T) {
	var text bytes.Buffer
	log.SetOutput(&text)
	t.Cleanup(func() { log.SetOutput(io.Discard) })
	const answer = "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n"
	for name, extra := range map[string]string{"with the answer": "", "later": "later"} {
		t.Run(name, func(t *testing.T) {
			r := good(t, func(c net.Conn) {
				br := bufio.NewReader(c)
				if _, _, err := readRequest(br); err != nil {
					return
				}
				if extra == "" {
					_, _ = io.WriteString(c, answer+"HTTP/1.1 202 "+canary+"\r\nContent-Length: 0\r\n\r\n")
				} else {
					_, _ = io.WriteString(c, answer)
					_, _ = io.WriteString(c, "HTTP/1.1 202 "+canary+"\r\nContent-Length: 0\r\n\r\n")
				}
				if _, _, err := readRequest(br); err == nil {
					t.Error("a connection in doubt took a request")
				}
			})
			c := r.client()
			_, err := post(t, c, 10)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return c.Idle() == 0 }, 5*time.Second, time.Millisecond)
			require.NotContains(t, text.String(), canary)
		})
	}
}

// covers: LOG-01
func TestAStaleAnswerIsNeverTheNextRequests(t *testing.T) {
	r := good(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, _, err := readRequest(br); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\nHTTP/1.1 202 stale\r\nContent-Length: 0\r\n\r\n")
		if _, _, err := readRequest(br); err == nil {
			t.Error("a connection in doubt took a request")
		}
	})
	c := r.client()
	for range 30 {
		ans, err := post(t, c, 10)
		require.NoError(t, err)
		require.Equal(t, 200, ans.Status)
		require.Zero(t, c.Idle(), "not even for a moment")
	}
}

func TestAConnectionThatEndsUnderANewRequest(t *testing.T) {
	for name, unasked := range map[string]string{"closed": "", "bytes": "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			r := good(t, func(c net.Conn) {
				br := bufio.NewReader(c)
				if _, _, err := readRequest(br); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n")
				<-end
				_, _ = io.WriteString(c, unasked)
			})
			c := r.client()
			_, err := post(t, c, 10)
			require.NoError(t, err)
			cn, reused, f := c.take(t.Context(), t.Context())
			require.Nil(t, f)
			require.True(t, reused)
			x := &exchange{method: "POST", uploaded: make(chan struct{}), done: make(chan result, 1)}
			require.True(t, cn.begin(x))
			close(end)
			res := <-x.done
			require.True(t, res.unsent)
			require.ErrorIs(t, cn.upload("POST / HTTP/1.1\r\n\r\n", []byte("x")), errUnsent, "and nothing leaves after that")
			require.False(t, cn.begin(x))
		})
	}
}

// covers: SND-05
func TestAnAnswerBeforeTheUploadEnded(t *testing.T) {
	r := good(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 413 x\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1000)) // and then no more
		<-t.Context().Done()
	})
	c := r.client()
	ans, err := post(t, c, 8<<20)
	require.NoError(t, err)
	require.Equal(t, 413, ans.Status)
	require.Equal(t, "no", string(ans.Body))
	require.True(t, ans.Early)
	require.Zero(t, c.Idle())
}

// covers: SND-05, ANS-17, ANS-18
func TestACutUpload(t *testing.T) {
	cut := good(t, func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 100_000)) })
	_, err := post(t, cut.client(), 8<<20)
	f := failure(t, err)
	require.Equal(t, Unreachable, f.Class)
	require.True(t, f.UploadBegan)
	require.True(t, f.UploadCut)
	require.False(t, f.TimedOut)

	stall := good(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1000))
		<-t.Context().Done()
	})
	_, err = post(t, stall.client(func(c *Config) { c.RequestTimeout = 200 * time.Millisecond }), 8<<20)
	f = failure(t, err)
	require.Equal(t, Timeout, f.Class)
	require.True(t, f.UploadBegan)
	require.True(t, f.UploadCut)

	silent := good(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c := silent.client(func(c *Config) { c.RequestTimeout = 200 * time.Millisecond })
	_, err = post(t, c, 1000)
	f = failure(t, err)
	require.Equal(t, Timeout, f.Class)
	require.True(t, f.UploadBegan)
	require.False(t, f.UploadCut)
	require.Zero(t, c.Idle(), "a connection whose request timed out takes no other")

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = silent.client().Do(ctx, &Request{Method: "POST", Path: "/", Body: []byte("{}")})
	require.Equal(t, Canceled, failure(t, err).Class)
}

// covers: CRD-08
func TestACloseLetsTheRequestOnTheWireEnd(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	r := good(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, _, err := readRequest(br); err != nil {
			return
		}
		close(began)
		<-finish
		_, _ = io.WriteString(c, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n")
		_, _, _ = readRequest(br)
	})
	c := r.client()
	result := make(chan error, 1)
	go func() {
		_, err := post(t, c, 10)
		result <- err
	}()
	<-began
	c.Close()
	_, err := post(t, c, 10)
	require.Equal(t, Canceled, failure(t, err).Class)
	close(finish)
	require.NoError(t, <-result)
	require.Zero(t, c.Idle())
	c.Wait() // the connection closed after its request (DEC-11)
	require.EqualValues(t, 1, r.accepted.Load())
}

// covers: CRD-13
func TestNoPrintOfAClientShowsTheCredential(t *testing.T) {
	c := good(t, answerOK).client()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, c), canary)
	}
}
