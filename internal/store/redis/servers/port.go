package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
)

// busDistance is the distance from a cluster node's port to its bus port.
const busDistance = 10000

// freeClusterPort returns a free port whose bus port is free too.
func freeClusterPort() (int, error) {
	for range 100 {
		port, err := launch.FreePort()
		if err != nil {
			return 0, err
		}
		if port+busDistance >= launch.OutgoingPorts {
			continue
		}
		if launch.Free(port+busDistance) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port with another %d above it", busDistance)
}

// bus returns the bus ports of a server with these arguments; nil without a bus.
func bus(args []string) func(port int) []int {
	if !slices.Contains(args, "--cluster-enabled") {
		return nil
	}
	return func(port int) []int { return []int{port + busDistance} }
}

// portTaken says whether Redis did not start because its port was taken.
func portTaken(err error) bool { return strings.Contains(err.Error(), "Failed listening on port") }

// answers says whether a Redis answers PING at addr, even with a request for a password.
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
