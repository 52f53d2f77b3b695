package cluster

import (
	"context"
	"encoding/binary"
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

// ports gives every port once.
type ports struct{ given map[int]bool }

// pair returns a free port whose successor is free too: a node listens on both for Raft and RPC.
func (p *ports) pair() (int, error) {
	if p.given == nil {
		p.given = map[int]bool{}
	}
	for range 200 {
		port := firstPort + int(binary.LittleEndian.Uint32(random(4))%uint32((lastPort-firstPort)/2))*2
		if p.given[port] || !free(port) || !free(port+1) {
			continue
		}
		p.given[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("%w: no free port from %d to %d", ErrTrouble, firstPort, lastPort)
}

func free(port int) bool {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback(port))
	return err == nil && l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
