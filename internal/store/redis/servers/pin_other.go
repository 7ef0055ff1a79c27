//go:build !linux

package servers

import "errors"

func setAffinity(int, []int) error { return errors.ErrUnsupported }

func isServer(int, string) bool { return false }
