package cluster

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownersKnown says that the system tells which process has a connection.
const ownersKnown = true

// has tells whether a process has a socket open.
func has(pid int, socket string) bool {
	fds := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false // it is gone
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && to == socket {
			return true
		}
	}
	return false
}

// socketOf is the socket of an IPv4 connection at its local end, as a process has it open; "" when it is gone.
func socketOf(local, remote net.Addr) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	want := kernelAddr(local) + " " + kernelAddr(remote) + " "
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, line, ok := strings.Cut(lines.Text(), ": "); ok && strings.HasPrefix(line, want) {
			if fields := strings.Fields(line); len(fields) > 8 && fields[8] != "0" {
				return "socket:[" + fields[8] + "]"
			}
		}
	}
	return ""
}

// kernelAddr writes an address as the kernel does: the four bytes as one number of this machine, and the port.
func kernelAddr(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || t.IP.To4() == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(t.IP.To4()), t.Port)
}
