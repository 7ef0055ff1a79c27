//go:build !linux

package pause

import "time"

// descriptor is the runtime's own timer, where no finer one is known.
type descriptor struct{}

func open() *descriptor { return &descriptor{} }

func (*descriptor) close() {}

// sleep returns at an instant, or later; false where that has come already.
func (*descriptor) sleep(until time.Time) bool {
	left := time.Until(until)
	time.Sleep(left)
	return left > 0
}
