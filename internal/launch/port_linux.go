package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// keep binds a socket to a port and does not listen on it. Servers, which all ask for
// SO_REUSEADDR, can listen there; the kernel gives it to no outgoing connection, and who
// does not ask for that cannot have it (ip(7); inet_csk_bind_conflict).
func keep(port int) (free func() error, err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	free = func() error { return unix.Close(socket) }
	if err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		err = unix.Bind(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		_ = free()
		return nil, err
	}
	return free, nil
}

// exclusive has a socket not share its port with those that are kept.
func exclusive(_, _ string, conn syscall.RawConn) error {
	var err error
	if problem := conn.Control(func(socket uintptr) {
		err = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}); problem != nil {
		return problem
	}
	return err
}
