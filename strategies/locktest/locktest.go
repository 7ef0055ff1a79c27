// Package locktest is the conformance suite: what a strategy claims of itself in
// its Info is what it is tested for, against real servers.
//
// Any strategy can run it from a test of its own, with servers that nobody else
// uses meanwhile, since connections are killed and the script cache is flushed:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Fixture {
//			return locktest.Fixture{Open: variant.Open, Nodes: func() []strategies.Node { … }}
//		}, variant.Info())
//	}
//
// Every failure names the promise that was found broken. Check returns the
// failures instead, for testing a suite or a locker that is meant to be rejected.
package locktest

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Factory makes what one of the suite's tests needs.
type Factory func(t *testing.T) Fixture

// Fixture is a strategy and the servers to try it on.
type Fixture struct {
	// Open opens the strategy as one application instance would.
	Open func(strategies.Config) (strategies.Locker, error)
	// Nodes returns one Node a server, with Options to dial from; the suite opens
	// each instance's own clients and closes them. It is not called when Info.Nodes
	// is 0.
	Nodes func() []strategies.Node

	// Pause and Resume stop the servers for a while with their connections open, as
	// SIGSTOP does; Restart ends them and starts them again, empty. Kill ends one
	// server, by its index in Nodes, and Revive starts it again, empty. The tests
	// that need what is nil are left out.
	Pause, Resume, Restart func()
	Kill, Revive           func(node int)

	// Patience is how long anything may take that is not lost for good, 20 s when it
	// is 0: far more than a loaded machine needs.
	Patience time.Duration
	// Rounds is how often a test plays what goes wrong only now and then, 30 times
	// when it is 0.
	Rounds int
	// Drawings is the directory for the drawings of impossible histories; "" is the
	// system's for temporary files.
	Drawings string
}

// Run tests what info claims.
func Run(t *testing.T, factory Factory, info strategies.Info) {
	for _, test := range tests() {
		if test.applies(info) {
			t.Run(test.name, func(t *testing.T) { play(onT{t}, factory(t), info, test) })
		}
	}
}

// Check runs the same tests, but returns what they find: t fails only when the
// servers cannot be had.
func Check(t *testing.T, factory Factory, info strategies.Info) []Failure {
	var all []Failure
	for _, test := range tests() {
		if !test.applies(info) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			found := &collector{T: t}
			fixture := factory(t)
			done := make(chan struct{}) // found ends the goroutine that it fails in
			go func() {
				defer close(done)
				play(found, fixture, info, test)
			}()
			<-done
			all = append(all, found.failures...)
		})
	}
	return all
}
