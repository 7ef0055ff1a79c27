// Package locktest is the conformance suite: what a lock claims of itself in its
// Info is what it is tested for, against real servers.
//
// A test runs it with Run, one subtest for each check. Here of a lock on a Redis
// that listens on addr, and that nobody else uses meanwhile, since connections are
// killed and the script cache is flushed:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Fixture {
//			return locktest.Fixture{
//				Open: func(c goredis.Config) (strategies.Locker, error) { return mylock.Open(c) },
//				Nodes: func() []goredis.Node {
//					return []goredis.Node{{Options: &redis.UniversalOptions{Addrs: []string{addr}}}}
//				},
//			}
//		}, strategies.Info{
//			Name: "mylock", Capacity: 1, Nodes: 1,
//			Claims: strategies.Claims{Exclusion: true, Recovery: true},
//		})
//	}
//
// A command runs it with Judge, which needs no package testing and returns a Verdict
// for each check: Checks lists them, with what each proves. Every failure names the
// promise that was found broken and what was seen of it. What cannot be tried with
// the Fixture, or does not come to a verdict, is said to be so and never passes.
package locktest

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Fixture is a lock and the servers to try it on. Open alone is enough for a lock
// that lives in the process; one on servers needs Nodes too. Each of the other
// functions may be nil: what takes it is then not tried.
type Fixture struct {
	// Open opens the lock as one application instance would. Its Config holds clients
	// of the instance's own, which the suite closes; a client that Open makes itself
	// is closed by the Locker's Close. A lock on the Config's clients, or that dials
	// with their Options, is tested more sharply: its commands can be held up.
	Open func(goredis.Config) (strategies.Locker, error)
	// Nodes returns one Node a server. Only their Options are used: the suite opens
	// and closes clients of its own. It is not called when Info.Nodes is 0.
	Nodes func() []goredis.Node

	// Pause and Resume stop the servers for a while with their connections open, as
	// SIGSTOP does; Restart ends them and starts them again, empty.
	Pause, Resume, Restart func() error
	// Kill ends one server, by its index in Nodes, and Revive starts it again, empty.
	Kill, Revive func(node int) error

	// Clients are those of the caller's own that Open's lockers use, if any: the
	// connections in their pools may stay when a Locker is closed.
	Clients []redis.UniversalClient

	// Failover makes a replica of each server, which has all that the server had, the
	// primary in its place, as the command FAILOVER does: connections stay as they are,
	// and new ones go to the new primary. Twice is back again.
	Failover func() error
	// Cluster starts a cluster, and Clock servers whose clock can be set, for a check
	// that wants them.
	Cluster func() (Cluster, error)
	Clock   func() (Clock, error)

	// Patience is how long anything may take that is not lost for good, 20 s when it
	// is 0: far more than a loaded machine needs. Checks that the lock says not to pass
	// have 4 s then.
	Patience time.Duration
	// Rounds is how often a check plays what goes wrong only now and then, 30 times
	// when it is 0.
	Rounds int
	// Drawings is the directory for the drawings of impossible histories; "" is the
	// system's for temporary files.
	Drawings string
}

// Cluster is a Redis Cluster.
type Cluster struct {
	Node      goredis.Node   // with IsClusterMode among its Options
	Primaries []goredis.Node // one for each, to look at it
	// Move begins to move the slot of the keys that fit a pattern to another node. It
	// moves one key at once; finish moves the rest, and the slot.
	Move func(pattern string) (finish func() error, err error)
}

// Clock is servers whose clock can be set.
type Clock struct {
	Nodes func() []goredis.Node           // as Fixture.Nodes
	Set   func(ahead time.Duration) error // of the machine's clock
}

// Judge runs all checks, one after the other on the same fixture, and returns their
// verdicts in the order of Checks. Once ctx has ended the rest are NotJudged.
func Judge(ctx context.Context, fixture Fixture, info strategies.Info) []Verdict {
	var verdicts []Verdict
	for _, check := range Checks() {
		verdicts = append(verdicts, check.Judge(ctx, fixture, info))
	}
	return verdicts
}

// Test is what Run needs of a test: T is *testing.T.
type Test[T any] interface {
	Helper()
	Context() context.Context
	Log(args ...any)
	Error(args ...any)
	Skip(args ...any)
	Run(name string, test func(t T)) bool
}

// Run tests what info claims: t is a *testing.T. Each check is a subtest on a fixture
// of its own, which fails when the check's promise is broken or could not be judged,
// and is skipped when it does not apply or cannot be tried.
func Run[T Test[T]](t T, factory func(t T) Fixture, info strategies.Info) {
	t.Helper()
	for _, check := range Checks() {
		t.Run(check.Name, func(t T) {
			if why := check.Inapplicable(info); why != "" {
				t.Skip("not applicable: " + why)
			}
			v := check.Judge(t.Context(), factory(t), info)
			for _, line := range v.Log {
				t.Log(line)
			}
			for _, f := range v.Failures {
				if v.Outcome == Admitted {
					t.Log(f)
				} else {
					t.Error(f)
				}
			}
			switch v.Outcome {
			case Admitted:
				t.Skip("not passed, as its Info says, since " + v.Because)
			case NotApplicable, NotTried:
				t.Skip(v.Outcome.String() + ": " + v.Because)
			case NotJudged:
				t.Error("not judged: " + v.Because)
			case Passed, Broken:
			}
		})
	}
}
