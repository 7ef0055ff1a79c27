package internal_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// A fault that is seen only while the machine stands still is neither held against the lock nor forgotten.
func TestCalmly(t *testing.T) {
	const ttl, attempts = time.Second, 6
	for _, test := range []struct {
		what   string
		still  time.Duration // of each attempt
		faulty int           // attempts that find a fault
		fault  string
		spoilt int
	}{
		{"a fault", ttl / 10, 1, "a fault", 0},
		{"a fault while it stood still", ttl, 1, "", 1},
		{"a fault again when it stood still for too short", ttl / 4, 2, "a fault", 1},
		{"faults, and it stood still each time", 32 * ttl, 9, "", attempts},
	} {
		played, at := 0, ttl
		fault, spoilt := pause.Calmly(attempts, ttl, func(do func()) time.Duration { do(); return test.still },
			func(length time.Duration) string {
				if played++; played > 1 {
					at *= 2
				}
				if length != at {
					t.Errorf("%s: attempt %d is with %v, want %v", test.what, played, length, at)
				}
				if played > test.faulty {
					return ""
				}
				return "a fault"
			})
		if fault != test.fault || len(spoilt) != test.spoilt {
			t.Errorf("%s: the fault is %q, spoilt were %q", test.what, fault, spoilt)
		}
	}
}
