package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// cluster is the part of a node's configuration that is about its peers.
type cluster struct {
	NodeID string `json:"node_id"`
	Addr   string
	Peers  []string
}

// serve answers a question mark with the node's name, and ends a connection that says anything else.
func (c *cluster) serve() error {
	for _, above := range []int{0, 1} {
		l, err := net.Listen("tcp", next(c.Addr, above))
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go c.answer(conn)
			}
		}()
	}
	return nil
}

func (c *cluster) answer(conn net.Conn) {
	defer conn.Close()
	first := make([]byte, 64)
	if n, err := conn.Read(first); err == nil && string(first[:n]) == "?" {
		fmt.Fprint(conn, c.NodeID)
	}
}

// next is an address with a port so much above.
func next(addr string, above int) string {
	host, port, _ := net.SplitHostPort(addr)
	p, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(p+above))
}

func name(addr string) string {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err = conn.Write([]byte("?")); err != nil {
		return err.Error()
	}
	said, err := io.ReadAll(conn)
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// ask tells what each peer says its name is, on Raft's port and on the one of node RPC.
func (c *cluster) ask(w io.Writer) {
	for _, p := range c.Peers {
		id, addr, _ := strings.Cut(p, "@")
		if id != c.NodeID {
			fmt.Fprintf(w, "# %s: raft=%s rpc=%s\n", id, name(addr), name(next(addr, 1)))
		}
	}
}

// chat asks all the time, so that a cut between nodes has something to meet.
func (c *cluster) chat() {
	for {
		for _, p := range c.Peers {
			_, addr, _ := strings.Cut(p, "@")
			name(addr)
			name(next(addr, 1))
		}
		time.Sleep(50 * time.Millisecond)
	}
}
