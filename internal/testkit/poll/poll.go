// Package poll lets tests wait until a condition becomes true, on slow machines too.
package poll

import (
	"flag"
	"testing"
	"time"
)

// ManyAtATime lets six parallel tests run at the same time, even on a machine with fewer cores, because such tests
// mostly wait for servers. A TestMain calls it first. The flag -parallel overrides it.
func ManyAtATime() {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err) // every test binary has this flag
	}
}

// bound is how long Until waits. It is far longer than a busy machine needs.
const bound = time.Minute

// Until waits until the function so returns true, and calls it at growing intervals. If that takes more than a minute,
// the test fails with a message that contains what, the description of the condition.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(bound); !so(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("the condition is not true after a minute: %s", what)
		}
		pause = min(pause*3/2, 10*time.Millisecond)
	}
}
