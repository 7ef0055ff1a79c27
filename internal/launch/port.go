package launch

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Servers get ports from lowestPort to OutgoingPorts-1. From OutgoingPorts on, Linux uses ports for outgoing
// connections, and such a connection could take a server's port while the server starts. On other systems the range of
// ports for outgoing connections begins at a higher number.
const (
	lowestPort    = 10_000
	OutgoingPorts = 32_768
)

// FreePort returns a TCP port on the loopback interface that is free now and that no other lockbench keeps for a
// server.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(OutgoingPorts-lowestPort)
		if err = Free(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// FreePorts returns a function that finds n different free ports.
func FreePorts(n int) func() ([]int, error) {
	return func() ([]int, error) {
		ports := make([]int, 0, n)
		for len(ports) < n {
			port, err := FreePort()
			if err != nil {
				return nil, err
			}
			if !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
		return ports, nil
	}
}

// Free returns an error if the port is in use or kept.
func Free(port int) error {
	alone := net.ListenConfig{Control: exclusive}
	listener, err := alone.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

// Kept reserves the ports of a server, so that FreePort does not return them. A server needs the same ports when it
// restarts after a kill.
type Kept []io.Closer

// Keep reserves ports. It skips ports that it cannot reserve, which are all ports on systems other than Linux. If
// another process takes a port that is not reserved, the server's next start returns an error.
func Keep(ports []int) (kept Kept) {
	for _, port := range ports {
		if socket, err := keep(port); err == nil {
			kept = append(kept, socket)
		}
	}
	return kept
}

// Free releases the ports.
func (k Kept) Free() {
	for _, socket := range k {
		_ = socket.Close() // an unconnected socket has nothing to lose
	}
}
