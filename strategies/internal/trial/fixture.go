package trial

import (
	"context"
	"net"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Fixture returns a fixture of a variant on servers of its own; a quorum has two nodes more
// than it needs. It leaves out what takes seconds; see Everything.
func Fixture(t *testing.T, variant strategies.Variant) locktest.Fixture {
	t.Helper()
	return On(t, nodesOf(variant), func(c goredis.Config) (strategies.Locker, error) { return goredis.Open(variant, c) })
}

func nodesOf(variant strategies.Variant) int {
	nodes := variant.Info().Nodes
	if nodes > 1 {
		nodes += 2
	}
	return nodes
}

// On returns a fixture of that many servers, for what open opens.
func On(t *testing.T, nodes int, open func(goredis.Config) (strategies.Locker, error)) locktest.Fixture {
	t.Helper()
	var all []*replicated
	for range nodes {
		all = append(all, &replicated{t: t, server: redistest.Start(t)})
	}
	each := func(do func(*replicated)) func() error { // do fails the test itself
		return func() error {
			for _, one := range all {
				do(one)
			}
			return nil
		}
	}
	return locktest.Fixture{
		Open: open,
		Nodes: func() []goredis.Node {
			var nodes []goredis.Node
			for _, one := range all {
				nodes = append(nodes, one.node())
			}
			return nodes
		},
		Pause:   each(func(one *replicated) { one.server.Pause() }),
		Resume:  each(func(one *replicated) { one.server.Resume() }),
		Restart: each(func(one *replicated) { one.server.Kill(); one.server.Restart(t) }),
		Kill:    func(node int) error { all[node].server.Kill(); return nil },
		Revive:  func(node int) error { all[node].server.Restart(t); return nil },

		Failover: each((*replicated).failOver),
	}
}

// Everything adds what takes seconds to a fixture: clusters, and clocks that can be set.
func Everything(t *testing.T, f locktest.Fixture, nodes int) locktest.Fixture {
	f.Cluster = func() (locktest.Cluster, error) { return cluster(t), nil }
	if _, err := exec.LookPath("cc"); err == nil {
		f.Clock = func() (locktest.Clock, error) { return settable(t, nodes), nil }
	}
	return f
}

// replicated is a server that may get a replica.
type replicated struct {
	t      testing.TB
	server *redistest.Server
	pair   atomic.Pointer[Pair] // nil until it first fails over
}

// node returns a node that dials the current primary.
func (r *replicated) node() goredis.Node {
	r.t.Helper()
	node := r.server.Node(r.t)
	options := *node.Options
	simple := options.Simple()
	simple.DialTimeout = 5 * time.Second
	dial := redis.NewDialer(simple)
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if pair := r.pair.Load(); pair != nil {
			address = pair.Primary().Options().Addr
		}
		return dial(ctx, network, address)
	}
	client := redis.NewUniversalClient(&options)
	r.t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}
}

// failOver makes the replica the primary. The first call starts the replica.
func (r *replicated) failOver() {
	r.t.Helper()
	if r.pair.Load() == nil {
		soon := r.server.Client(r.t).ConfigSet(r.t.Context(), "repl-diskless-sync-delay", "0")
		if err := soon.Err(); err != nil {
			r.t.Fatal(err)
		}
		pair := NewPair(r.t, r.server, redistest.Start(r.t, "--repl-diskless-sync-delay", "0"))
		pair.Replicate()
		r.pair.Store(pair)
	}
	r.pair.Load().FailOver("FAILOVER")
}

func cluster(t *testing.T) locktest.Cluster {
	t.Helper()
	top := redistest.StartTopology(t, "cluster:3")
	c := ClusterOf(t, top)
	connect := func(o redis.UniversalOptions) goredis.Node {
		o.DisableIdentity, o.ContextTimeoutEnabled = true, true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		client := redis.NewUniversalClient(&o)
		t.Cleanup(func() { _ = client.Close() })
		return goredis.Node{Client: client, Options: &o}
	}
	found := locktest.Cluster{
		Node: connect(c.Options()),
		Move: func(pattern string) (finish func() error, err error) {
			m := c.Migrate(c.SlotOf(pattern))
			m.Carry(1)
			return func() error { m.Finish(); return nil }, nil
		},
		Die: func(pattern string) (kill func() ([]goredis.Node, error), err error) {
			die := c.mortal(top, pattern)
			return func() (living []goredis.Node, err error) {
				for _, node := range die() {
					at := node.Options()
					living = append(living, connect(redis.UniversalOptions{Addrs: []string{at.Addr}, Password: at.Password}))
				}
				return living, nil
			}, nil
		},
	}
	for _, node := range c.Nodes {
		at := node.Options()
		found.Primaries = append(found.Primaries, connect(redis.UniversalOptions{Addrs: []string{at.Addr}, Password: at.Password}))
	}
	return found
}

func settable(t *testing.T, nodes int) locktest.Clock {
	t.Helper()
	var all []*redistest.Server
	var clocks []*Clock
	for range nodes {
		server, clock := StartSettable(t)
		all, clocks = append(all, server), append(clocks, clock)
	}
	return locktest.Clock{
		Nodes: func() []goredis.Node {
			var nodes []goredis.Node
			for _, server := range all {
				nodes = append(nodes, server.Node(t))
			}
			return nodes
		},
		Set: func(ahead time.Duration) error {
			for _, clock := range clocks {
				clock.Set(ahead)
			}
			return nil
		},
	}
}

// CountDials returns a node, and counts how often its client, and whatever else uses its
// options, dials.
func CountDials(t testing.TB, server *redistest.Server) (goredis.Node, *atomic.Int64) {
	t.Helper()
	dials := new(atomic.Int64)
	node := server.Node(t)
	options := *node.Options
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}, dials
}

// Redis starts a server for an example, which has no testing.T.
func Redis() (address string, stop func()) {
	own, err := servers.StartOwn(context.Background(), servers.Options{RunID: "test"})
	if err != nil {
		panic(err)
	}
	return own.Addr(), func() { _ = own.Close(context.Background()) }
}

// Calm runs a play that a stalled machine can spoil. play returns what kept it from showing
// anything, such as a lock that ran out before anybody waited for it, or "". Calm runs it six
// times at most, with its times multiplied by 1, 4 and then 16. A fault that play finds fails
// the test at once.
func Calm(t testing.TB, play func(times int) (spoilt string)) {
	t.Helper()
	for _, times := range []int{1, 4, 16, 16, 16, 16} {
		spoilt := play(times)
		if spoilt == "" {
			return
		}
		t.Logf("spoilt, with times multiplied by %d: %s", times, spoilt)
	}
	t.Error("it was spoilt each time")
}
