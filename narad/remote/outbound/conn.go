package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"narad.example/narad/wire"
)

const (
	maxHeaderBytes  = 64 << 10
	maxInterim      = 5                      // 1xx answers before the real one
	uploadGrace     = 50 * time.Millisecond  // from an answer to the end of its upload
	answerGrace     = 500 * time.Millisecond // from a failed upload to the answer that the target may have sent before it cut
	answerBufferLen = 8 << 10
)

// conn is one connection. At most one exchange is on it at a time.
type conn struct {
	client       *Client
	tls          *tls.Conn
	out          *corked
	in           *limited
	br           *bufio.Reader
	born         time.Time
	certNotAfter time.Time

	mu      sync.Mutex  // guards current, ended, timer
	current *exchange   // the request on the wire; nil while idle
	ended   bool        // the read loop has seen the end; no exchange may begin
	timer   *time.Timer // closes it when it has been idle for too long
}

// exchange is one request and its answer on a connection.
type exchange struct {
	method    string
	requestID string
	uploaded  chan struct{} // closed when the upload ended or failed
	uploadErr error         // set before uploaded is closed
	done      chan result   // holds one
}

type result struct {
	answer *Answer
	err    error
	unsent bool // not one byte of the request has left
}

func newConn(c *Client, raw net.Conn) *conn {
	out := &corked{Conn: raw}
	cn := &conn{client: c, out: out, tls: tls.Client(out, c.tls), born: time.Now()}
	cn.in = &limited{r: cn.tls}
	cn.br = bufio.NewReaderSize(cn.in, answerBufferLen)
	return cn
}

// kill closes the connection without a farewell, so that it never waits for the network.
func (cn *conn) kill() {
	cn.mu.Lock()
	if cn.timer != nil {
		cn.timer.Stop()
	}
	cn.mu.Unlock()
	_ = cn.out.Close() // closing twice is harmless and there is nothing to learn from it
}

// rest arms the timer of an idle connection: the idle timeout, or less when its age ends before.
func (cn *conn) rest(d time.Duration) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.timer = time.AfterFunc(d, func() {
		if cn.client.forget(cn) {
			cn.kill()
		}
	})
}

// wake stops the timer, which also watches the age (NET-07), and tells whether the connection may take a request.
func (cn *conn) wake() bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.timer != nil {
		cn.timer.Stop()
		cn.timer = nil
	}
	return !cn.ended
}

// begin puts the exchange on the connection, unless its read loop has seen the end.
func (cn *conn) begin(x *exchange) bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.ended {
		return false
	}
	cn.out.cork()
	cn.current = x
	return true
}

// abort closes the connection while x is on it. A later exchange is not x's to cut.
func (cn *conn) abort(x *exchange) {
	cn.mu.Lock()
	mine := cn.current == x
	cn.mu.Unlock()
	if mine {
		cn.kill()
	}
}

// do sends one request and waits for its answer. unsent says that the request is still whole and may go out elsewhere.
func (cn *conn) do(ctx, caller context.Context, head string, r *Request) (ans *Answer, f *Failure, unsent bool) {
	x := &exchange{method: r.Method, requestID: r.RequestID, uploaded: make(chan struct{}), done: make(chan result, 1)}
	if !cn.begin(x) {
		return nil, failed(ctx, caller, errUnsent, false), true
	}
	stop := context.AfterFunc(ctx, func() { cn.abort(x) })
	defer stop()
	x.uploadErr = cn.upload(head, r.Body)
	close(x.uploaded)
	if x.uploadErr != nil {
		grace := time.AfterFunc(answerGrace, func() { cn.abort(x) })
		defer grace.Stop()
	}
	res := <-x.done
	if res.err == nil {
		return res.answer, nil, false
	}
	f = failed(ctx, caller, res.err, false)
	f.UploadBegan = !res.unsent && len(r.Body) > 0 && cn.out.began()
	f.UploadCut = f.UploadBegan && x.uploadErr != nil
	return nil, f, res.unsent
}

func (cn *conn) upload(head string, body []byte) error {
	if _, err := io.WriteString(cn.tls, head); err != nil {
		return err
	}
	if _, err := cn.tls.Write(body); err != nil {
		return err
	}
	return cn.out.flush()
}

// readLoop reads one answer after the other until the connection ends or is in doubt (DEC-45). It gives each exchange exactly
// one result.
func (cn *conn) readLoop() {
	defer cn.kill()
	for {
		cn.in.left = maxHeaderBytes
		_, err := cn.br.Peek(1)
		x := cn.awaited()
		if x == nil {
			cn.client.forget(cn)
			return // an idle connection ended, or bytes came unasked
		}
		if cn.out.seal() {
			if err == nil {
				err = errNotHTTP // bytes before the request
			}
			cn.finish(x, result{err: err, unsent: true}, false)
			return
		}
		if err != nil {
			cn.finish(x, result{err: err}, false)
			return
		}
		early := !cn.out.lastBegan()
		ans, keep, err := cn.readAnswer(x)
		if err != nil {
			cn.finish(x, result{err: err}, false)
			return
		}
		ans.Early = early || !x.ended()
		keep = keep && !ans.Early && cn.br.Buffered() == 0
		if !cn.finish(x, result{answer: ans}, keep) {
			return
		}
	}
}

// awaited returns the exchange on the connection. Without one the connection is over.
func (cn *conn) awaited() *exchange {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.current == nil {
		cn.ended = true
	}
	return cn.current
}

// finish gives the exchange its result, after the connection went back to the client so that the caller's next request
// finds it. It tells whether the connection lives on.
func (cn *conn) finish(x *exchange, r result, keep bool) bool {
	cn.mu.Lock()
	cn.current = nil
	cn.ended = cn.ended || !keep
	cn.mu.Unlock()
	keep = keep && cn.client.release(cn)
	x.done <- r
	return keep
}

// ended waits a moment for the end of an upload that was answered, and tells whether it ended well.
func (x *exchange) ended() bool {
	timer := time.NewTimer(uploadGrace)
	defer timer.Stop()
	select {
	case <-x.uploaded:
		return x.uploadErr == nil
	case <-timer.C:
		return false
	}
}

// readAnswer reads the header and at most MaxAnswerBytes of the body. keep is false when the connection must close after it.
func (cn *conn) readAnswer(x *exchange) (ans *Answer, keep bool, err error) {
	for range maxInterim + 1 {
		cn.in.left = maxHeaderBytes
		resp, err := http.ReadResponse(cn.br, &http.Request{Method: x.method}) //nolint:bodyclose // closing would read an endless body to its end
		if err != nil {
			return nil, false, cn.answerError(err)
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		return cn.readBody(x, resp)
	}
	return nil, false, errNotHTTP
}

func (cn *conn) readBody(x *exchange, resp *http.Response) (ans *Answer, keep bool, err error) {
	if id := resp.Header.Get(wire.HeaderRequestID); x.requestID != "" && id != "" && id != x.requestID {
		return nil, false, errForeignID
	}
	cn.in.left = 2 * MaxAnswerBytes // the body, its chunk lines and a trailer
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswerBytes+1))
	if err != nil && !errors.Is(err, errHeader) {
		return nil, false, cn.answerError(err)
	}
	// The body is never closed: Close would read an endless one to its end, and it holds nothing but this connection.
	ans = &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, CertNotAfter: cn.certNotAfter, Truncated: err != nil, At: cn.client.now()}
	if len(body) > MaxAnswerBytes {
		ans.Body, ans.Truncated = body[:MaxAnswerBytes], true
	}
	return ans, !ans.Truncated && !resp.Close && resp.StatusCode >= 200, nil
}

// answerError keeps a failure of the network, which may show as a header cut short, apart from bytes that are not HTTP.
func (cn *conn) answerError(err error) error {
	switch {
	case cn.in.err != nil:
		return cn.in.err
	case networkError(err):
		return err
	}
	return errNotHTTP
}

// limited bounds what one answer may cost. Only the read loop touches it.
type limited struct {
	r    io.Reader
	left int
	err  error // the first, which ends the connection
}

// Read refuses with errHeader once the bytes that it may read are used up.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.err = errHeader
		return 0, errHeader
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	if err != nil && l.err == nil {
		l.err = err
	}
	return n, err
}
