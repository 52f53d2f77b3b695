package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// ErrUnreachable is returned when a call was not sent at all: no connection, or no proof. It may be tried again anywhere.
var ErrUnreachable = errors.New("peer: not reached")

// ErrUnknownOp is returned when the other node does not know the op, being of an older release (WRT-08). status.Code of the
// error is codes.Unimplemented.
var ErrUnknownOp = errors.New("peer: the op is unknown there")

const keepaliveTime = 10 * time.Second

// ClientOptions of a Client; Secret and Dial are needed.
type ClientOptions struct {
	Secret  string // the cluster secret
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	Cluster func() string // the ID of this node's cluster, empty while it is not known; nil says nothing, as an older release does
	Timeout time.Duration // of a call whose context has no deadline; 0 is 10 s
}

// Client calls other nodes, over one connection per address. It is safe for use by many goroutines.
type Client struct {
	o     ClientOptions
	calls sync.WaitGroup

	mu     sync.Mutex // guards the rest
	closed bool
	peers  map[string]*conn
}

// conn is the connection to one address, made again by gRPC when it breaks.
type conn struct {
	grpc *grpc.ClientConn

	mu   sync.Mutex // guards last
	last error      // why the newest handshake failed
}

// NewClient makes a client without a connection.
func NewClient(o ClientOptions) *Client {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return &Client{o: o, peers: make(map[string]*conn)}
}

// Patient returns a context whose calls wait for a connection until they end, while others fail at once between two tries to connect: for a question
// that everybody must answer, so that a node that has just come back does. One that is away costs the whole time of the call.
func Patient(ctx context.Context) context.Context { return context.WithValue(ctx, patientKey{}, true) }

type patientKey struct{}

// Call sends body to an op of the node at addr and returns its answer. The error is the handler's *wire.Problem; or wraps
// ErrUnreachable when nothing was sent (ErrSecret, ErrCluster or ErrNoSecret too when that is why), ErrUnknownOp, or a gRPC status: codes.Internal
// when the handler failed, anything else when the outcome is unknown.
func (c *Client) Call(ctx context.Context, addr, op string, body []byte) ([]byte, error) {
	return c.CallInto(ctx, addr, op, body, nil)
}

// CallInto is Call with memory for the answer, which lies there if it is large enough, and elsewhere if not.
func (c *Client) CallInto(ctx context.Context, addr, op string, body, room []byte) ([]byte, error) {
	p, err := c.connect(addr)
	if err != nil {
		return nil, err
	}
	defer c.calls.Done()
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	var sent atomic.Bool
	answer := room
	patient := ctx.Value(patientKey{}) != nil
	err = p.grpc.Invoke(context.WithValue(ctx, sentKey{}, &sent), "/"+service+"/"+op, &body, &answer, grpc.WaitForReady(patient))
	switch {
	case err == nil:
		return unframe(answer)
	case !sent.Load():
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, p.why(err))
	case status.Code(err) == codes.Unimplemented:
		return nil, fmt.Errorf("%w: %w", ErrUnknownOp, err)
	}
	return nil, fmt.Errorf("peer: call %s: %w", op, err)
}

// connect returns the connection to addr, made when there is none, and counts a call in.
func (c *Client) connect(addr string) (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: the client is closed", ErrUnreachable)
	}
	p, ok := c.peers[addr]
	if !ok {
		if c.o.Secret == "" {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, ErrNoSecret)
		}
		p = &conn{}
		g, err := grpc.NewClient("passthrough:///"+addr,
			grpc.WithTransportCredentials(&proof{secret: []byte(c.o.Secret), cluster: c.o.Cluster, failed: p.handshakeFailed}),
			grpc.WithAuthority("narad"),
			grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
				p.handshakeFailed(nil) // what follows is a new try
				return c.o.Dial(ctx, to)
			}),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}),
				grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithConnectParams(grpc.ConnectParams{
				// The longest delay and its jitter are less than the two seconds that a patient question has.
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: handshakeTimeout,
			}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTime / 2}),
			grpc.WithStatsHandler(sentWatch{}),
			grpc.WithInitialWindowSize(callWindow), grpc.WithInitialConnWindowSize(connWindow),
			grpc.WithWriteBufferSize(connBuffer), grpc.WithReadBufferSize(connBuffer),
			grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		p.grpc = g
		c.peers[addr] = p
	}
	c.calls.Add(1)
	return p, nil
}

func (p *conn) handshakeFailed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
}

// why adds the error of the secret, or of the cluster, to what gRPC says, which knows only its text.
func (p *conn) why(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := status.Code(err)
	if (errors.Is(p.last, ErrSecret) || errors.Is(p.last, ErrCluster)) && (code == codes.Unavailable || code == codes.DeadlineExceeded) {
		return p.last
	}
	return err
}

// Close ends the connections, and with them the calls, and waits for these.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	peers := c.peers
	c.peers = nil
	c.mu.Unlock()
	for _, p := range peers {
		// Its only error is that it is closed already.
		_ = p.grpc.Close()
	}
	c.calls.Wait()
}

type sentKey struct{}

// sentWatch notes when a call's body has been handed to a connection. Before that nothing can have happened on the other side.
type sentWatch struct{}

// TagRPC returns ctx.
func (sentWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes that the headers, and with them perhaps the body, are out.
func (sentWatch) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s.(type) {
	case *stats.OutHeader, *stats.OutPayload:
		if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
			sent.Store(true)
		}
	}
}

// TagConn returns ctx.
func (sentWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (sentWatch) HandleConn(context.Context, stats.ConnStats) {}
