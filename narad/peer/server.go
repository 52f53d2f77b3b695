package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"narad.example/narad/wire"
)

// Handler answers one op. The body is the handler's own. The context ends with the caller's deadline, or when the caller goes
// away. A *wire.Problem reaches the caller as it is, any other error only as codes.Internal.
type Handler func(ctx context.Context, body []byte) ([]byte, error)

// ServerOptions of a Server; Secret and Logger are needed.
type ServerOptions struct {
	Secret  string        // the cluster secret; never the previous one (CRD-10)
	Cluster func() string // may be nil, see ClientOptions
	Logger  *slog.Logger
}

// Server answers the other nodes' calls.
type Server struct {
	log   *slog.Logger
	desc  grpc.ServiceDesc
	proof *proof
	grpc  *grpc.Server

	mu     sync.Mutex // guards warned
	warned time.Time
}

// NewServer makes a server that does not listen yet.
func NewServer(o ServerOptions) *Server {
	s := &Server{log: o.Logger, desc: grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}}
	s.proof = &proof{secret: []byte(o.Secret), cluster: o.Cluster, failed: s.handshakeFailed}
	s.grpc = grpc.NewServer(
		grpc.Creds(s.proof),
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.ConnectionTimeout(2*handshakeTimeout),
		grpc.InitialWindowSize(callWindow), grpc.InitialConnWindowSize(connWindow),
		grpc.WriteBufferSize(connBuffer), grpc.ReadBufferSize(connBuffer),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2}),
		grpc.WaitForHandlers(true),
	)
	return s
}

// handshakeFailed warns at most once a minute: a node with another secret, or of another cluster, tries again and again. Other failures are mostly
// connections that were cut, or port scans.
func (s *Server) handshakeFailed(err error) {
	what := "refused a peer: its NARAD_CLUSTER_SECRET is not this node's"
	switch {
	case errors.Is(err, ErrCluster):
		what = "refused a peer of another cluster"
	case !errors.Is(err, ErrSecret):
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.warned.IsZero() || now.Sub(s.warned) >= time.Minute {
		s.warned = now
		s.log.Warn(what, slog.Any("cause", err))
	}
}

// Handle registers an op. All are registered before Serve.
func (s *Server) Handle(op string, h Handler) {
	s.register(op, func(ctx context.Context, body []byte) (any, error) {
		answer, err := h(ctx, body)
		return &framed{answerBody, answer}, err
	})
}

// HandleLent registers an op whose answers are lent.
func (s *Server) HandleLent(op string, h Lender) {
	s.register(op, func(ctx context.Context, body []byte) (any, error) { return h(ctx, body) })
}

func (s *Server) register(op string, h func(ctx context.Context, body []byte) (any, error)) {
	s.desc.Methods = append(s.desc.Methods, grpc.MethodDesc{
		MethodName: op,
		Handler: func(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var body []byte
			if err := dec(&body); err != nil {
				return nil, err
			}
			return s.run(ctx, op, h, body)
		},
	})
}

// run returns what the codec knows, or an error of gRPC.
func (s *Server) run(ctx context.Context, op string, h func(ctx context.Context, body []byte) (any, error), body []byte) (any, error) {
	answer, err := h(ctx, body)
	if err == nil {
		return answer, nil
	}
	var p *wire.Problem
	if errors.As(err, &p) {
		var refusal *framed
		if refusal, err = frameProblem(p); err == nil {
			return refusal, nil
		}
	}
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	s.log.Error("a peer call failed", "op", op, "error", err)
	return nil, status.Error(codes.Internal, "internal error")
}

// Serve answers calls on l until Close, and closes l. It is called once. Close ends it without an error; the error is
// ErrNoSecret without a cluster secret, or what the listener failed with.
func (s *Server) Serve(l net.Listener) error {
	if len(s.proof.secret) == 0 {
		return errors.Join(ErrNoSecret, l.Close())
	}
	cert, err := throwAway()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.proof.cert = cert
	s.grpc.RegisterService(&s.desc, s)
	if err = s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve peers: %w", err)
	}
	return nil
}

// Close cuts all connections and waits for the handlers, whose contexts end.
func (s *Server) Close() { s.grpc.Stop() }
