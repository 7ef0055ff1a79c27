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

// Fixture is a lock and the servers to test it on. An in-process lock needs only Open; a lock on servers needs Nodes
// too. Each of the other functions may be nil; the checks that need a nil function are NotTried.
type Fixture struct {
	// Open opens the lock like one application instance. Its Config holds clients for this instance only, which the suite
	// closes. If Open makes a client itself, the Locker's Close must close that client. If the lock uses the Config's
	// clients or dials with their Options, the suite can delay its commands and so tests it more strictly.
	Open func(goredis.Config) (strategies.Locker, error)
	// Nodes returns one Node per server. The suite uses only the Options of each Node, from which it opens its own
	// clients. It does not call Nodes if Info.Nodes is 0.
	Nodes func() []goredis.Node

	// Pause stops the servers as SIGSTOP does, which leaves their connections open. Resume continues them.
	Pause, Resume func() error
	// Kill ends the server with the given index in Nodes. Revive starts it again without data.
	Kill, Revive func(node int) error

	// Clients are the caller's own clients that the Lockers use, if any. The connections in their pools may stay open
	// after a Locker is closed.
	Clients []redis.UniversalClient

	// Failover replaces each server with a replica that has all data of the server. New connections go to the new primary.
	// Existing connections may stay open, as after the command FAILOVER, or be closed, as Sentinel and managed services
	// do. A second call restores the original roles.
	Failover func() error
	// Cluster starts a cluster, Clock starts servers whose clock can be set, and Sentinel starts servers that Redis
	// Sentinel watches. The suite calls each of them only in the checks that need it.
	Cluster  func() (Cluster, error)
	Clock    func() (Clock, error)
	Sentinel func() (Sentinel, error)

	// Patience is how long a step may take before the step counts as failed. 0 means 20 s, far more than a loaded machine
	// needs, or 4 s in checks that the lock fails according to its Info.
	Patience time.Duration
	// Rounds is how often a check repeats steps whose faults show only occasionally; 0 means 30.
	Rounds int
	// Drawings is the directory for the drawings of impossible histories; "" means the
	// system's directory for temporary files.
	Drawings string
}

// Cluster is a Redis Cluster whose slots the suite may move and whose nodes it may kill.
type Cluster struct {
	Node      goredis.Node   // with IsClusterMode among its Options
	Primaries []goredis.Node // one per primary, for the suite's own client
	// Move begins to move a slot to another node. It is the slot of the keys that match pattern. Move itself moves one
	// key; finish moves the other keys and the slot.
	Move func(pattern string) (finish func() error, err error)
	// Die starts a replica of the node that has the slot of the keys that match pattern. kill waits until the replica has
	// all data of the node and then ends the node as SIGKILL does. kill returns the living nodes, with the replica in
	// place of the dead node. Die may be nil.
	Die func(pattern string) (kill func() (living []goredis.Node, err error), err error)
}

// Clock is a set of servers whose clock can be set.
type Clock struct {
	Nodes func() []goredis.Node           // like Fixture.Nodes
	Set   func(ahead time.Duration) error // sets the clocks ahead of the machine's, or back if negative
}

// Sentinel is a primary and its replica, both watched by Redis Sentinel.
type Sentinel struct {
	Node     goredis.Node // with a MasterName among its Options
	Old, New goredis.Node // the primary and the replica, for the suite's own clients
	// Failover makes Sentinel promote the replica. The old primary does not notice the failover and continues as a master.
	Failover func() error
}

// Judge runs all checks one after the other on the same fixture and returns their results in the order of Checks. The
// checks that remain when ctx ends are NotJudged. A check is NotTried if it relies on a basic promise that an earlier
// check found broken, such as that a free lock can be acquired.
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
// promise is broken or not judged. It is skipped when the check does not apply, when the fixture lacks what it needs,
// when it relies on a promise that an earlier check found broken, or when it fails as the lock's Info declares.
//
// Without -v, go test prints nothing about a subtest before the whole test ends. Run therefore also writes a line to
// os.Stderr when a subtest fails or takes more than a few seconds. go test shows this line immediately if its command
// line names no package, and otherwise at the end of a failed test.
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

// slow is the shortest duration of a check for which progress writes a line although the check passed.
const slow = 5 * time.Second

// progress writes one line if the check failed, reached no verdict or was slow.
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
