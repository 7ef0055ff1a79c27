package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// freePort is a TCP port on the loopback interface that was free just now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// picker finds a port for a server to be started.
type picker func() (int, error)

// busDistance is from a cluster node's port to that of its cluster bus.
const busDistance = 10000

// freeClusterPort is a free port whose cluster bus has a free port too.
func freeClusterPort() (int, error) {
	for range 100 {
		port, err := freePort()
		if err != nil {
			return 0, err
		}
		bus, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+busDistance)))
		if err == nil {
			return port, bus.Close()
		}
	}
	return 0, fmt.Errorf("find a free port with another %d above it", busDistance)
}

// onFreePort starts a server on a free port. Between our choice of it and
// Redis's use of it somebody else may take it; then another is tried.
func onFreePort(pick picker, start func(port int) error) error {
	var port int
	var err error
	for range 5 {
		if port, err = pick(); err != nil {
			return err
		}
		if err = start(port); err == nil || !strings.Contains(err.Error(), "Failed listening on port") {
			return err
		}
	}
	return err
}

// answers says whether a Redis replies to PING at addr, be it to ask for a
// password.
func answers(ctx context.Context, addr string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && (strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NO"))
}
