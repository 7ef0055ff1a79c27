package launch

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
)

// Servers get ports from lowestPort to below OutgoingPorts. From OutgoingPorts on, Linux uses ports
// for outgoing connections (other systems begin later): such a connection could take a server's
// port while the server starts.
const (
	lowestPort    = 10_000
	OutgoingPorts = 32_768
)

// FreePort returns a TCP port on the loopback interface that is free now, and that no other lockbench
// keeps for a server.
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

// FreePorts returns n different free ports.
func FreePorts(n int) ([]int, error) {
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

// Free returns an error if the port is in use or kept.
func Free(port int) error {
	alone := net.ListenConfig{Control: exclusive}
	listener, err := alone.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

// Picker finds a port for a server.
type Picker func() (int, error)

// OnFreePort starts a server on a free port. Another process may take the port before the server
// does; if taken recognises that error, it tries another port.
func OnFreePort(pick Picker, taken func(error) bool, start func(port int) error) error {
	var port int
	var err error
	for range 5 {
		if port, err = pick(); err != nil {
			return err
		}
		if err = start(port); err == nil || taken == nil || !taken(err) {
			return err
		}
	}
	return err
}

// Kept holds ports of a server so that FreePort gives them to nobody else: after a kill the server
// must get them again. The zero value keeps none. Its methods are safe for concurrent use.
type Kept struct {
	mu      sync.Mutex
	sockets []io.Closer
}

// Keep keeps a server's port and its further ports instead of those kept before. It only works on
// Linux. If another process takes a port nevertheless, the server's next start reports it.
func (k *Kept) Keep(port int, beside func(port int) []int) {
	k.Free()
	k.mu.Lock()
	defer k.mu.Unlock()
	ports := []int{port}
	if beside != nil {
		ports = append(ports, beside(port)...)
	}
	for _, port := range ports {
		if socket, err := keep(port); err == nil {
			k.sockets = append(k.sockets, socket)
		}
	}
}

// Free releases the ports.
func (k *Kept) Free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, socket := range k.sockets {
		_ = socket.Close() // an unconnected socket has nothing to lose
	}
	k.sockets = nil
}
