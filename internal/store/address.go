package store

import (
	"net"
	"strings"
)

// NetworkTo classifies the way to host:port, or to the path of a socket.
func NetworkTo(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix socket"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "remote"
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return "loopback"
	}
	return "remote"
}

// Remote says whether an address may be on another machine.
func Remote(addr string) bool { return NetworkTo(addr) == "remote" }
