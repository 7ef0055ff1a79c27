//go:build !unix

package pipeline

import (
	"net"
	"syscall"
)

func socketOf(net.Conn) syscall.RawConn { return nil }

func quiet(syscall.RawConn) bool { return true }
