package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// FailureClass says why there is no answer (DEC-05).
type FailureClass uint8

// The classes.
const (
	Refused     FailureClass = iota + 1 // the guard: port, host or address; nothing was sent
	TLS                                 // TLS itself answered: an alert, a version, a certificate
	Unreachable                         // no address, no connection, a reset, a cut, a truncated answer
	Timeout                             // the request's whole time is over (DEC-14)
	Malformed                           // something answered, but not in HTTP, or with another request's ID (SND-14)
	Canceled                            // the caller's context ended, or the client was closed before the request began
)

// String returns the class in one or two words.
func (c FailureClass) String() string {
	switch c {
	case Refused:
		return "destination refused"
	case TLS:
		return "tls failed"
	case Unreachable:
		return "unreachable"
	case Timeout:
		return "timed out"
	case Malformed:
		return "not an HTTP answer"
	case Canceled:
		return "canceled"
	}
	return "unknown"
}

// Reasons of a Refused failure, the label of narad_remote_destination_refused_total.
const (
	RefusedPort    = "port"
	RefusedHost    = "host"
	RefusedAddress = "address"
)

// Failure is the error of every request without an answer. Its text is the class alone. The cause is dropped on purpose: it
// may quote a host name, an address, a certificate or bytes that the target sent.
type Failure struct {
	Class       FailureClass
	Reason      string // of Refused: RefusedPort, RefusedHost, RefusedAddress; else empty
	UploadBegan bool   // a part of the body may have left, so the records may be on the target
	UploadCut   bool   // the upload began and did not end
	TimedOut    bool   // the time of the request was over, the caller's own deadline included
}

// Error names the class.
func (f *Failure) Error() string { return "remote request failed: " + f.Class.String() }

// reason of a refused dial, empty for no failure.
func (f *Failure) reason() string {
	if f == nil {
		return ""
	}
	return f.Reason
}

// guardError is what the guard returns; it carries the rule that refused and no value.
type guardError struct{ reason string }

func (e *guardError) Error() string { return "destination refused by the " + e.reason + " rule" }

// Internal causes that the read loop reports.
var (
	errGoodFailed = errors.New("no address that the guard allows could be reached")
	errUnsent     = errors.New("nothing of the request has left")
	errHeader     = errors.New("the header of the answer is over its limit")
	errNotHTTP    = errors.New("the answer is not HTTP")
	errForeignID  = errors.New("the answer carries another request's ID")
)

// failed builds the Failure of a request that ended with err. ctx is the request's own context, bounded by its timeout; caller is
// the context that the caller gave.
func failed(ctx, caller context.Context, err error, handshake bool) *Failure {
	f := &Failure{Class: classify(err, handshake)}
	var g *guardError
	switch {
	case errors.As(err, &g):
		f.Reason = g.reason
	case errors.Is(caller.Err(), context.Canceled):
		f.Class = Canceled
	case ctx.Err() != nil:
		f.Class, f.TimedOut = Timeout, true
	}
	return f
}

// classify decides on types alone. A failed handshake is TLS's own answer unless the network failed under it (DEC-05).
func classify(err error, handshake bool) FailureClass {
	var (
		guard  *guardError
		record tls.RecordHeaderError
		cert   *tls.CertificateVerificationError
		op     *net.OpError
	)
	switch {
	case errors.As(err, &guard):
		return Refused
	case errors.As(err, &cert):
		return TLS
	case errors.As(err, &record), errors.Is(err, errNotHTTP), errors.Is(err, errHeader), errors.Is(err, errForeignID):
		return Malformed
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls: an alert of the other end
		return TLS
	case errors.As(err, &op) && op.Op == "local error": // crypto/tls: what came could not be TLS, so we sent the alert
		return Malformed
	case networkError(err), errors.Is(err, errGoodFailed):
		return Unreachable
	case handshake:
		return TLS
	}
	return Unreachable
}

// networkError tells whether the connection failed rather than what was said on it.
func networkError(err error) bool {
	var (
		network net.Error
		errno   syscall.Errno
	)
	return errors.As(err, &network) || errors.As(err, &errno) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
