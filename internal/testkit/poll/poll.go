// Package poll lets tests wait for what comes true after a while on any machine.
package poll

import (
	"testing"
	"time"
)

// bound is far more than a busy machine needs.
const bound = time.Minute

// Until asks until it is so. The test fails if that takes a minute.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it has not come true: %s", what)
		}
	}
}
