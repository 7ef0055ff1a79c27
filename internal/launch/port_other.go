//go:build !linux

package launch

import (
	"errors"
	"syscall"
)

func keep(int) (free func() error, err error) { return nil, errors.ErrUnsupported }

func exclusive(_, _ string, _ syscall.RawConn) error { return nil }
