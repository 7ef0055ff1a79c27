//go:build !linux

package launch

import (
	"errors"
	"io"
	"syscall"
)

func keep(int) (io.Closer, error) { return nil, errors.ErrUnsupported }

func exclusive(_, _ string, _ syscall.RawConn) error { return nil }
