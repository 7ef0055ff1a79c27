//go:build !linux

package launch

import "errors"

// SetAffinity is not known but on Linux.
func SetAffinity(int, []int) error { return errors.ErrUnsupported }
