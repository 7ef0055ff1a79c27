package locktest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Fixture is a lock and the servers to test it on. A lock that lives in the process needs only Open; a lock on
// servers needs Nodes too. Each of the other functions may be nil; the checks that need it are then not tried.
type Fixture struct {
	// Open opens the lock like one application instance. Its Config holds clients for this instance only, which the
	// suite closes; the Locker's Close must close a client that Open makes itself. If the lock uses the Config's clients
	// or dials with their Options, the suite can delay its commands and so tests it more strictly.
	Open func(goredis.Config) (strategies.Locker, error)
	// Nodes returns one Node per server. The suite uses only their Options, with which it opens its own clients. It does
	// not call Nodes when Info.Nodes is 0.
	Nodes func() []goredis.Node

	// Pause and Resume stop the servers for a while and leave their connections open, as
	// SIGSTOP does.
	Pause, Resume func() error
	// Kill ends the server with the given index in Nodes, and Revive starts it again, empty.
	Kill, Revive func(node int) error

	// Clients are the caller's own clients that Open's lockers use, if any: the connections
	// in their pools may stay when a Locker is closed.
	Clients []redis.UniversalClient

	// Failover puts a replica that has all the data in each server's place. New connections go to the new primary.
	// Existing connections may stay open, as after the command FAILOVER, or be closed, as Sentinel and managed services
	// do. A second call restores the first roles.
	Failover func() error
	// Cluster starts a cluster, Clock starts servers whose clock can be set, and Sentinel starts
	// servers that Redis Sentinel watches. Only the checks that need them call them.
	Cluster  func() (Cluster, error)
	Clock    func() (Clock, error)
	Sentinel func() (Sentinel, error)

	// Patience is how long a step may take before it counts as failed. 0 means 20 s, far more than a loaded machine
	// needs, and 4 s in checks that the lock fails according to its Info.
	Patience time.Duration
	// Rounds is how often a check repeats steps that fail only occasionally; 0 means 30 times.
	Rounds int
	// Drawings is the directory for the drawings of impossible histories; "" means the
	// system's directory for temporary files.
	Drawings string
}

// Cluster is a Redis Cluster.
type Cluster struct {
	Node      goredis.Node   // with IsClusterMode among its Options
	Primaries []goredis.Node // one per primary, for the suite's own client
	// Move begins to move the slot of the keys that match a pattern to another node. It moves one key at once; finish
	// moves the other keys and the slot.
	Move func(pattern string) (finish func() error, err error)
	// Die starts a replica of the node that has the slot of the keys that match a pattern. kill ends the node as SIGKILL
	// does, as soon as the replica has all its data, and returns the living nodes, with the replica in place of the dead
	// node. Die may be nil.
	Die func(pattern string) (kill func() (living []goredis.Node, err error), err error)
}

// Clock is a set of servers whose clock can be set.
type Clock struct {
	Nodes func() []goredis.Node           // like Fixture.Nodes
	Set   func(ahead time.Duration) error // sets the clock to this time ahead of the machine's
}

// Sentinel is a primary and its replica, which Redis Sentinel watches.
type Sentinel struct {
	Node     goredis.Node // with a MasterName among its Options
	Old, New goredis.Node // the primary and the replica, for the suite's own clients
	// Failover makes Sentinel promote the replica. The old primary does not notice this and continues as a master.
	Failover func() error
}

// Judge runs all checks one after the other on the same fixture and returns their results in the order of Checks. The
// checks that remain when ctx ends are NotJudged. Checks that rely on a promise which an earlier check found broken,
// such as that a free lock can be acquired, are NotTried.
func Judge(ctx context.Context, fixture Fixture, info strategies.Info) []Result {
	var results []Result
	var basis foundation
	same := func() Fixture { return fixture }
	for _, check := range Checks() {
		results = append(results, basis.judge(ctx, check, same, info))
	}
	return results
}

// Run tests the claims of info. Each check is a subtest with its own fixture. The subtest fails when the check's
// promise is broken or not judged. It is skipped when the check does not apply, cannot be tried, relies on a promise
// that an earlier check found broken, or fails as the lock's Info declares.
//
// Without -v, go test prints nothing about a subtest before the whole test ends. Run therefore also writes a line to
// os.Stderr when a subtest fails or has taken more than a few seconds. go test shows it at once if its command line
// names no package, else at the end of a failed test.
func Run(t *testing.T, factory func(t *testing.T) Fixture, info strategies.Info) {
	t.Helper()
	var basis foundation
	untried, ready := 0, false
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			if why := check.Inapplicable(info); why != "" {
				t.Skip("not applicable: " + why)
			}
			if basis.lacks(check) != "" {
				untried++
			}
			v := basis.judge(t.Context(), check, func() Fixture {
				fixture := factory(t)
				ready = true
				return fixture
			}, info)
			for _, line := range v.Log {
				t.Log(line)
			}
			if !testing.Verbose() {
				progress(os.Stderr, t.Name(), v)
			}
			switch v.Verdict {
			case Broken, NotJudged:
				t.Error(v)
			case Admitted, NotApplicable, NotTried:
				t.Skip(v)
			case Passed:
			}
		})
		if t.Failed() && !ready {
			t.Log("no check was tried, because the fixture of the first one failed")
			return
		}
	}
	if untried > 0 {
		t.Logf("%d checks were not tried, because %s", untried, cmp.Or(basis.broken, basis.unrecovers))
	}
}

// slow is how long a check takes that is worth a line although it found nothing.
const slow = 5 * time.Second

// progress writes a line about a check that failed or was slow.
func progress(w io.Writer, test string, v Result) {
	if v.Verdict != Broken && v.Verdict != NotJudged && v.Took < slow {
		return
	}
	seen := string(v.Verdict)
	if v.Verdict == Broken && len(v.Failures) > 0 {
		seen = v.Failures[0].String()
	} else if v.Because != "" {
		seen += ", because " + v.Because
	}
	fmt.Fprintf(w, "%s: %s (%.1f s)\n", test, seen, v.Took.Seconds())
}

// Calls counts how often a server ran each command while do ran, including commands inside scripts (INFO
// commandstats). No other client may use the server during this time.
func Calls(t testing.TB, server redis.UniversalClient, do func()) map[string]int {
	t.Helper()
	before := calls(t, server)
	do()
	during := map[string]int{}
	for command, n := range calls(t, server) {
		if n -= before[command]; n > 0 && command != "info" {
			during[command] = int(n)
		}
	}
	return during
}

func calls(t testing.TB, server redis.UniversalClient) map[string]int64 {
	t.Helper()
	stats, err := server.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatalf("read commandstats: %v", err)
	}
	return replies.ParseInfo(stats).Calls()
}
