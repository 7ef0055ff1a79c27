package launch

import (
	"fmt"
	"net"
)

// FreePort is a TCP port on the loopback interface that was free just now.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
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
