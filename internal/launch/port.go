package launch

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers get ports from lowestPort up to OutgoingPorts, from where on systems give ports to
// outgoing connections (Linux; others begin later): one of those could take a server's port
// while it is being started, or started again.
const (
	lowestPort    = 10_000
	OutgoingPorts = 32_768
)

// FreePort is a TCP port on the loopback interface that was free just now.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(OutgoingPorts-lowestPort)
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
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
