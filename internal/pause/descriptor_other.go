//go:build !linux

package pause

import "time"

// descriptor is the runtime's own timer: no finer one is known here.
type descriptor struct{}

func open() *descriptor { return &descriptor{} }

func (*descriptor) close() {}

// sleep returns at an instant, or later; false if the instant is over already.
func (*descriptor) sleep(until time.Time) bool {
	left := time.Until(until)
	time.Sleep(left)
	return left > 0
}
