package node

import (
	"context"
	"net"
	"syscall"
	"time"
)

// OSNetwork is the machine's own network.
type OSNetwork struct{}

// Listen opens a TCP listener.
func (OSNetwork) Listen(network, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), network, address)
}

// Dial connects through a dialer whose control hook asks control (NET-05).
func (OSNetwork) Dial(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 15 * time.Second}
	if control != nil {
		d.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return control(network, address)
		}
	}
	return d.DialContext(ctx, network, address)
}
