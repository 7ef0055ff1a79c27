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

// busDistance is from a cluster node's port to that of its cluster bus.
const busDistance = 10000

// freeClusterPort is a free port whose cluster bus has a free port too.
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

// bus are the ports of a server's cluster bus, which it has with these arguments; nil without.
func bus(args []string) func(port int) []int {
	if !slices.Contains(args, "--cluster-enabled") {
		return nil
	}
	return func(port int) []int { return []int{port + busDistance} }
}

// portTaken says whether Redis did not start because somebody else has its port.
func portTaken(err error) bool { return strings.Contains(err.Error(), "Failed listening on port") }

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
