package outbound

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// MaxAnswerBytes is how much of an answer's body is read (DEC-01).
const MaxAnswerBytes = 64 << 10

// Config describes one client. URL must be canonical (CanonicalURL). A zero duration takes the default of api.md.
type Config struct {
	URL            string
	Authorization  string // the ready value of the header (SND-13); empty sends none
	CAPEM          string // the only trust anchors when given, else the system roots
	RequestTimeout time.Duration
	IdleTimeout    time.Duration
	ConnMaxAge     time.Duration
	Guard          *Guard   // nil refuses every dial
	Dial           DialFunc // nil is NetDial()
	// Dialed is told of each new connection: how long TCP and TLS took, or by which rule the guard refused (RefusedPort, ...).
	// Nil tells nobody.
	Dialed func(took time.Duration, refused string)
	Now    func() time.Time // the wall clock that certificates are verified against and answers are dated by; nil is time.Now
}

// Request is one request. It is not changed and may be used again.
type Request struct {
	Method          string
	Path            string      // already escaped, from "/", with the query
	Header          http.Header // further headers, may be nil
	Body            []byte      // must not change until Do returned
	ContentEncoding string      // "zstd", "gzip" or empty
	RequestID       string      // sent as X-Narad-Request-Id; an answer that carries another one is refused (SND-14)
	Anonymous       bool        // send no Authorization (TGT-04)
}

// Answer is what the target said. Nothing of Header and Body may reach a log or an answer of ours (LOG-01).
type Answer struct {
	Status       int
	Header       http.Header
	Body         []byte // at most MaxAnswerBytes
	Truncated    bool   // the body was longer than that
	Early        bool   // it came before the upload ended: the target cut the upload short (SND-05)
	CertNotAfter time.Time
	At           time.Time // when it came, by the wall clock: a date in it is measured against this
}

// Client sends requests to one remote under one credential. It is safe for concurrent use; it opens as many connections as
// there are requests at once, so the caller's slots bound them (SND-12).
type Client struct {
	url   string
	base  string // the path of the URL
	head  string // the headers that every request carries
	auth  string // the Authorization line
	addr  string // host:port to dial
	guard *Guard
	dial  DialFunc
	tls   *tls.Config
	now   func() time.Time

	dialed func(took time.Duration, refused string)

	requestTimeout, idleTimeout, connMaxAge time.Duration

	wg sync.WaitGroup // the read loops

	mu     sync.Mutex // guards what follows
	idle   []*conn    // the most recently used last
	closed bool
	peer   Peer
}

// New builds a client; it opens no connection. It refuses a URL that is not canonical and a CA bundle that is none.
func New(c Config) (*Client, error) {
	canonical, err := CanonicalURL(c.URL)
	if err != nil {
		return nil, err
	}
	if canonical != c.URL {
		return nil, urlError("is not canonical")
	}
	u, err := url.Parse(canonical)
	if err != nil {
		return nil, urlError("cannot be read")
	}
	conf, err := tlsConfig(u.Hostname(), c.CAPEM)
	if err != nil {
		return nil, err
	}
	if !headerValue(c.Authorization) {
		return nil, fmt.Errorf("outbound: the authorization value is no header value")
	}
	cl := &Client{
		url: canonical, base: u.Path, addr: HostPort(canonical), guard: c.Guard, dial: c.Dial, tls: conf, now: c.Now, dialed: c.Dialed,
		head:           "Host: " + u.Host + "\r\nUser-Agent: narad-remote\r\nAccept: application/json\r\nX-Narad-Client: narad-remote\r\n",
		requestTimeout: orDefault(c.RequestTimeout, 30*time.Second),
		idleTimeout:    orDefault(c.IdleTimeout, 30*time.Second),
		connMaxAge:     orDefault(c.ConnMaxAge, 5*time.Minute),
	}
	if c.Authorization != "" {
		cl.auth = "Authorization: " + c.Authorization + "\r\n"
	}
	if cl.now == nil {
		cl.now = time.Now
	}
	conf.Time = cl.now
	if cl.dialed == nil {
		cl.dialed = func(time.Duration, string) {}
	}
	if cl.guard == nil {
		cl.guard = &Guard{}
	}
	if cl.dial == nil {
		cl.dial = NetDial()
	}
	return cl, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// String shows nothing of the client, so that no print of it shows the credential (CRD-13).
func (c *Client) String() string { return "outbound client" }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// Do sends the request and reads the answer, within the request timeout as a whole: lookup, dial, handshake, upload, answer
// (DEC-14). The error is always a *Failure. After Close it fails with Canceled and sends nothing: the caller takes
// the remote's present client and asks again (DEC-11).
func (c *Client) Do(ctx context.Context, r *Request) (*Answer, error) {
	head, err := c.requestHead(r)
	if err != nil {
		return nil, &Failure{Class: Malformed}
	}
	bounded, cancel := context.WithTimeout(ctx, c.requestTimeout)
	defer cancel()
	for {
		cn, reused, f := c.take(bounded, ctx)
		if f != nil {
			return nil, f
		}
		ans, f, unsent := cn.do(bounded, ctx, head, r)
		if unsent && reused && bounded.Err() == nil {
			continue // the idle connection had ended before a byte was written; the request is still whole
		}
		if f != nil {
			return nil, f
		}
		return ans, nil
	}
}

// take returns an idle connection that is young enough, or a new one.
func (c *Client) take(ctx, caller context.Context) (cn *conn, reused bool, f *Failure) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, false, &Failure{Class: Canceled}
		}
		n := len(c.idle)
		if n == 0 {
			c.mu.Unlock()
			begun := time.Now()
			cn, f = c.open(ctx, caller)
			took := time.Since(begun)
			if f == nil {
				c.met(cn, took)
			}
			if f == nil || f.Class == Refused {
				c.dialed(took, f.reason())
			}
			return cn, false, f
		}
		cn = c.idle[n-1]
		c.idle[n-1] = nil
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		if cn.wake() {
			return cn, true, nil
		}
		cn.kill()
	}
}

// release takes a connection back after its request and tells whether it stays open.
func (c *Client) release(cn *conn) bool {
	left := c.connMaxAge - time.Since(cn.born)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || left <= 0 {
		return false
	}
	cn.rest(min(left, c.idleTimeout))
	c.idle = append(c.idle, cn)
	return true
}

// forget drops an idle connection and tells whether it was one.
func (c *Client) forget(cn *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.idle, cn)
	if i < 0 {
		return false
	}
	c.idle = slices.Delete(c.idle, i, i+1)
	return true
}

// Close closes the idle connections and lets requests on the wire end; their connections close after them (CRD-08).
// Every later Do fails. It does not wait for anything.
func (c *Client) Close() {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	for _, cn := range idle {
		cn.kill()
	}
}

// Wait returns when every connection of a closed client has ended.
func (c *Client) Wait() { c.wg.Wait() }

// Peer is what the client's newest connection told of the target. It is zero before the first one.
type Peer struct {
	Connect      time.Duration // what TCP and TLS took
	CertNotAfter time.Time     // when the server's certificate expires
}

// Peer is the newest connection's.
func (c *Client) Peer() Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer
}

func (c *Client) met(cn *conn, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer = Peer{Connect: took, CertNotAfter: cn.certNotAfter}
}

// Idle counts the connections that wait for a request.
func (c *Client) Idle() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle)
}
