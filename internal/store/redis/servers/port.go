package servers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
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
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reply := store.Knock(ctx, addr, ping)
	return strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NO")
}

// Speaks says whether a Redis answers a PING at addr, even with an error.
func Speaks(ctx context.Context, addr string) bool {
	reply := store.Knock(ctx, addr, ping)
	return strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-")
}

const ping = "PING\r\n"
