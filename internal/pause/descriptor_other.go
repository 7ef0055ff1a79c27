//go:build !linux

package pause

import "time"

// descriptor sleeps with the runtime's timer, because lockbench has no finer timer on this system.
type descriptor struct{}

func open() *descriptor { return &descriptor{} }

func (*descriptor) close() {}

// sleep returns true at or after the instant until. If that instant has already passed, it returns false at once.
func (*descriptor) sleep(until time.Time) bool {
	left := time.Until(until)
	time.Sleep(left)
	return left > 0
}
