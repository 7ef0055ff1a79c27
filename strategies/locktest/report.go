package locktest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// Failure is a promise that was found broken.
type Failure struct {
	Test    string // of the suite, that noticed
	Promise string
	Seen    string // what it was noticed by
}

// String names the promise first.
func (f Failure) String() string { return fmt.Sprintf("broken promise: %s: %s", f.Promise, f.Seen) }

// reporter is what the suite needs of a *testing.T, and where failures go.
type reporter interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Logf(format string, args ...any)
	Skip(args ...any)
	Failed() bool
	FailNow()
	report(Failure)
}

// onT fails the test.
type onT struct{ *testing.T }

func (t onT) report(f Failure) { t.Helper(); t.Error(f) }

// collector keeps failures to itself. What ends a test ends the goroutine that
// it runs in.
type collector struct {
	*testing.T

	mu       sync.Mutex
	failures []Failure
}

func (c *collector) report(f Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, f)
}

func (c *collector) Failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failures) > 0
}

func (c *collector) FailNow() { runtime.Goexit() }

func (c *collector) Skip(args ...any) { c.Log(args...); runtime.Goexit() }

// errorf says by what the test saw its promise broken.
func (s *stage) errorf(format string, args ...any) {
	s.Helper()
	s.broken(s.test.promise, format, args...)
}

// fatalf is errorf, and ends the test.
func (s *stage) fatalf(format string, args ...any) {
	s.Helper()
	s.errorf(format, args...)
	s.FailNow()
}

// broken is errorf for a promise that another test is about.
func (s *stage) broken(promise, format string, args ...any) {
	s.Helper()
	s.report(Failure{s.test.name, promise, fmt.Sprintf(format, args...)})
}
