//go:build !linux

package launch

import "errors"

// SetAffinity returns an error: it needs Linux.
func SetAffinity(int, []int) error { return errors.ErrUnsupported }
