// Package poll lets tests wait until a condition becomes true, on slow machines too.
package poll

import (
	"flag"
	"testing"
	"time"
)

// ManyAtATime lets parallel tests wait for servers at the same time, even on few cores. A TestMain calls it first. The
// flag -parallel overrides it.
func ManyAtATime() {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err) // every test binary has this flag
	}
}

// bound is far longer than a busy machine needs.
const bound = time.Minute

// Until calls the condition at growing intervals until it is true. The test fails if this takes a minute.
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
