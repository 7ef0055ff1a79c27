package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Servers get ports from lowestPort up to OutgoingPorts, from where on systems give ports to
// outgoing connections (Linux; others begin later): one of those could take a server's port
// while it is being started.
const (
	lowestPort    = 10_000
	OutgoingPorts = 32_768
)

// FreePort is a TCP port on the loopback interface that was free just now, and that is kept
// for no server of another lockbench.
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

// FreePorts are so many different ones.
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

// Free returns an error when somebody has the port, or keeps it.
func Free(port int) error {
	alone := net.ListenConfig{Control: exclusive}
	listener, err := alone.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

// Picker finds a port for a server to be started.
type Picker func() (int, error)

// OnFreePort starts a server on a free port. Between our choice of it and the server's
// use of it somebody else may take it, which taken tells by the error; then another is
// tried.
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

// Kept are ports that FreePort gives to nobody: those of a server of ours, which may have
// been killed and is to come back on them. The zero value keeps none.
type Kept struct{ free []func() error }

// Keep keeps a server's port and those it listens on besides, in place of what was kept
// before. It is done as well as the system lets us (nowhere but on Linux): who takes a port
// all the same is found out when the server starts.
func (k *Kept) Keep(port int, beside func(port int) []int) {
	k.Free()
	ports := []int{port}
	if beside != nil {
		ports = append(ports, beside(port)...)
	}
	for _, port := range ports {
		if free, err := keep(port); err == nil {
			k.free = append(k.free, free)
		}
	}
}

// Free gives them back.
func (k *Kept) Free() {
	for _, free := range k.free {
		_ = free() // a socket without a connection has nothing to lose
	}
	k.free = nil
}
