//go:build unix

package pipeline

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// socketOf returns the socket of a connection without TLS, else nil.
func socketOf(conn net.Conn) syscall.RawConn {
	if s, is := conn.(syscall.Conn); is {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// quiet says whether nothing has come on an idle connection: neither its end nor what nobody asked for.
func quiet(socket syscall.RawConn) bool {
	var nothing bool
	err := socket.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return nothing || errors.Is(err, os.ErrDeadlineExceeded) // a deadline of before says nothing about the connection
}
