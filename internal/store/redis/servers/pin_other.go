//go:build !linux

package servers

import "errors"

func allowedCPUs() ([]int, error) {
	return nil, errors.New("pinning to CPUs works on Linux only")
}

func setAffinity(int, []int) error { return errors.ErrUnsupported }
