//go:build !linux

package pause

import "time"

// descriptor uses the runtime's timer, because lockbench knows no finer one on this system.
type descriptor struct{}

func open() *descriptor { return &descriptor{} }

func (*descriptor) close() {}

// sleep returns at or after the instant until; false if it has already passed.
func (*descriptor) sleep(until time.Time) bool {
	left := time.Until(until)
	time.Sleep(left)
	return left > 0
}
