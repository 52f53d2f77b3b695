package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Ports are taken below the range from which systems take the ports of outgoing connections, so that the port of a killed node
// or of a disabled link is still free when it comes back.
const (
	firstPort = 21000
	lastPort  = 31000
)

// ports gives every port once on this machine: while it is given, the UDP port of the same number is held, which no node uses and which another rig, of
// this process or of another one, then cannot hold. It is not for several goroutines at once.
type ports struct{ held []net.PacketConn }

// pair returns a free port whose successor is free too: a node listens on both for Raft and RPC.
func (p *ports) pair() (int, error) {
	for range 200 {
		port := firstPort + int(binary.LittleEndian.Uint32(random(4))%uint32((lastPort-firstPort)/2))*2
		if p.hold(port) && free(port) && free(port+1) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("%w: no free port from %d to %d", ErrTrouble, firstPort, lastPort)
}

// hold keeps other rigs from a pair. One that turns out not to be free stays held too, which costs nothing.
func (p *ports) hold(port int) bool {
	c, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", loopback(port))
	if err == nil {
		p.held = append(p.held, c)
	}
	return err == nil
}

// close gives the ports back.
func (p *ports) close() (errs error) {
	for _, c := range p.held {
		errs = errors.Join(errs, c.Close())
	}
	p.held = nil
	return errs
}

func free(port int) bool {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback(port))
	return err == nil && l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
