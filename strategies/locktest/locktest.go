package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Fixture is a lock and the servers to test it on. A lock that lives in the process needs
// Open alone; a lock on servers needs Nodes too. Each of the other functions may be nil: the
// checks that need it are then not tried.
type Fixture struct {
	// Open opens the lock as one application instance would. Its Config holds clients of the
	// instance's own, which the suite closes; the Locker's Close closes a client that Open
	// makes itself. The suite can hold up the commands of a lock that uses the Config's
	// clients, or dials with their Options, and so tests it more strictly.
	Open func(goredis.Config) (strategies.Locker, error)
	// Nodes returns one Node per server. The suite uses only their Options: it opens and
	// closes clients of its own. It does not call Nodes when Info.Nodes is 0.
	Nodes func() []goredis.Node

	// Pause and Resume stop the servers for a while and leave their connections open, as
	// SIGSTOP does.
	Pause, Resume func() error
	// Kill ends one server, by its index in Nodes, and Revive starts it again, empty.
	Kill, Revive func(node int) error

	// Clients are the caller's own clients that Open's lockers use, if any: the connections
	// in their pools may stay when a Locker is closed.
	Clients []redis.UniversalClient

	// Failover puts a replica that has all the data in each server's place. New connections go
	// to the new primary. The others may stay as they are, as after the command FAILOVER, or be
	// closed, as Sentinel and managed services do. A second call restores the first roles.
	Failover func() error
	// Cluster starts a cluster, Clock starts servers whose clock can be set, and Sentinel starts
	// servers that Redis Sentinel watches. Only the checks that need them call them.
	Cluster  func() (Cluster, error)
	Clock    func() (Clock, error)
	Sentinel func() (Sentinel, error)

	// Patience is how long a step may take before it counts as lost. 0 means 20 s, far more
	// than a loaded machine needs, and 4 s in checks that the lock's Info says it does not
	// pass.
	Patience time.Duration
	// Rounds is how often a check repeats what goes wrong only now and then; 0 means 30
	// times.
	Rounds int
	// Drawings is the directory for the drawings of impossible histories; "" means the
	// system's directory for temporary files.
	Drawings string
}

// Cluster is a Redis Cluster.
type Cluster struct {
	Node      goredis.Node   // with IsClusterMode among its Options
	Primaries []goredis.Node // one per primary, to look at it
	// Move begins to move the slot of the keys that fit a pattern to another node. It
	// moves one key at once; finish moves the rest, and the slot.
	Move func(pattern string) (finish func() error, err error)
	// Die gives the node that has the slot of the keys that fit a pattern a replica. kill ends
	// the node as SIGKILL does, once the replica has all that it has, and returns the nodes
	// that live, the replica in the other's place. Die may be nil.
	Die func(pattern string) (kill func() (living []goredis.Node, err error), err error)
}

// Clock is servers whose clock can be set.
type Clock struct {
	Nodes func() []goredis.Node           // as Fixture.Nodes
	Set   func(ahead time.Duration) error // ahead of the machine's clock
}

// Sentinel is a primary and its replica, which Redis Sentinel watches.
type Sentinel struct {
	Node     goredis.Node // with a MasterName among its Options
	Old, New goredis.Node // the primary and the replica, to look at each
	// Failover has Sentinel make the replica the primary. The old primary does not notice: it lives on
	// as a master.
	Failover func() error
}

// Judge runs all checks, one after the other on the same fixture, and returns their results
// in the order of Checks. Once ctx has ended, the remaining checks are NotJudged.
func Judge(ctx context.Context, fixture Fixture, info strategies.Info) []Result {
	var results []Result
	for _, check := range Checks() {
		results = append(results, check.Judge(ctx, fixture, info))
	}
	return results
}

// Run tests what info claims. Each check is a subtest on a fixture of its own. The subtest
// fails when the check's promise is broken or not judged. It is skipped when the check does
// not apply, cannot be tried, or fails as the lock's Info says.
func Run(t *testing.T, factory func(t *testing.T) Fixture, info strategies.Info) {
	t.Helper()
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			if why := check.Inapplicable(info); why != "" {
				t.Skip("not applicable: " + why)
			}
			v := check.Judge(t.Context(), factory(t), info)
			for _, line := range v.Log {
				t.Log(line)
			}
			switch v.Verdict {
			case Broken, NotJudged:
				t.Error(v)
			case Admitted, NotApplicable, NotTried:
				t.Skip(v)
			case Passed:
			}
		})
	}
}

// Calls counts how often a server ran each command while do ran, including commands inside
// scripts (INFO commandstats). Nobody else may use the server meanwhile.
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
