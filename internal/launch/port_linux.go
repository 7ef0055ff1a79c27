package launch

import (
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// keep binds a socket to a port and does not listen on it. Servers use SO_REUSEADDR, so they can
// listen there. The kernel does not use the port for outgoing connections, and a socket without
// SO_REUSEADDR cannot bind to it (ip(7); inet_csk_bind_conflict).
func keep(port int) (io.Closer, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		err = unix.Bind(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		_ = unix.Close(socket)
		return nil, err
	}
	return os.NewFile(uintptr(socket), "port "+strconv.Itoa(port)), nil
}

// exclusive turns SO_REUSEADDR off, so that a kept port counts as in use.
func exclusive(_, _ string, conn syscall.RawConn) error {
	var err error
	if problem := conn.Control(func(socket uintptr) {
		err = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}); problem != nil {
		return problem
	}
	return err
}
