package zookeeper_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/store"
	servers "github.com/lockbench/lockbench/internal/store/zookeeper"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/gozk"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/zookeeper"
	"github.com/lockbench/lockbench/workloads"
)

// A server takes a second to start: the tests share one.
var shared = sync.OnceValues(func() (store.Server, error) {
	return servers.Store{}.Open(context.Background(), "test", store.Options{})
})

func TestMain(m *testing.M) {
	drive.ManyAtATime()
	code := m.Run()
	if s, err := shared(); err == nil {
		if err := s.Close(context.Background()); err != nil {
			println(err.Error())
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// node is the shared server, as locks reach it.
func node(t *testing.T) gozk.Node {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return gozk.Node{Servers: []string{s.Describe().Address}, Standalone: true}
}

// open opens a lock on a node, and closes it when the test ends.
func open(t *testing.T, n gozk.Node, ttl time.Duration) *zookeeper.Locker {
	t.Helper()
	l, err := zookeeper.Open(gozk.Config{Nodes: []gozk.Node{n}, Prefix: t.Name() + ":", TTL: ttl}, zookeeper.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// acquire must succeed, in time.
func acquire(t *testing.T, l *zookeeper.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease strategies.Lease, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), drive.Bound)
	defer cancel()
	if err := lease.Release(ctx); err != want { //nolint:errorlint // as it is documented
		t.Fatalf("release: %v, want %v", err, want)
	}
}

// queue is how many are in a lock's.
func queue(t *testing.T, key string) int {
	t.Helper()
	n := node(t)
	s, err := n.Connect(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	children, err := s.Children(t.Context(), n.Path(t.Name()+":"+key))
	if err != nil {
		t.Fatal(err)
	}
	return len(children)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	n := node(t)
	rounds := 10
	if extent.Thorough() {
		rounds = 0
	}
	locktest.Run(t, func(*testing.T) locktest.Fixture {
		return locktest.Fixture{Rounds: rounds, Open: func(c goredis.Config) (strategies.Locker, error) {
			return zookeeper.Open(gozk.Config{Nodes: []gozk.Node{n}, Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers, Probe: c.Probe}, zookeeper.Options{})
		}}
	}, zookeeper.Strategy().Info)
}

// Tokens grow when the server was killed and has come back with its data.
func TestTokensGrowOverARestart(t *testing.T) {
	t.Parallel()
	s, err := servers.Store{}.Open(t.Context(), "restart", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	l := open(t, gozk.Node{Servers: []string{s.Describe().Address}, Standalone: true}, 10*time.Second)
	kill, err := workloads.ParseFault("kill:data=keep")
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	rounds := 2
	if extent.Thorough() {
		rounds = 4
	}
	for range rounds {
		for range 3 {
			lease := acquire(t, l, "key")
			token := lease.(strategies.Fenced).FencingToken()
			if token <= last {
				t.Errorf("token %d came after %d", token, last)
			}
			last = token
			release(t, lease, nil)
		}
		held := acquire(t, l, "other")
		action, err := s.Faults(nil).Prepare(t.Context(), kill, store.RunMarks{})
		if err == nil {
			err = action.Hit(t.Context())
		}
		if err == nil {
			err = action.End(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		release(t, held, nil) // the session has come back, and all its leases with it
	}
}

// However a cancel races with the grant, nobody is left in the queue, and whoever is granted
// the lock can give it back.
func TestCancelRacesWithGrant(t *testing.T) {
	t.Parallel()
	holder, waiter := open(t, node(t), 10*time.Second), open(t, node(t), 10*time.Second)
	release(t, acquire(t, waiter, "key"), nil) // its session is open
	granted := 0
	rounds := 60
	if extent.Thorough() {
		rounds = 300
	}
	delay := time.Millisecond // sooner after a grant and later after none: it stays a race
	for round := range rounds {
		before := granted
		lease := acquire(t, holder, "key")
		ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
		var all sync.WaitGroup
		all.Go(func() {
			got, err := waiter.Acquire(ctx, "key")
			if err == nil {
				granted++
				release(t, got, nil)
			}
		})
		time.Sleep(time.Duration(round%5) * time.Millisecond)
		all.Go(func() {
			time.Sleep(delay)
			cancel()
		})
		release(t, lease, nil)
		all.Wait()
		if delay = delay * 5 / 4; granted > before {
			delay /= 2
		}
	}
	t.Logf("granted %d times of %d", granted, rounds)
	if granted == 0 || granted == rounds {
		t.Error("it was no race")
	}
	if n := queue(t, "key"); n > 0 {
		t.Errorf("%d are left in the queue", n)
	}
}

// A release whose context has ended is carried out nevertheless: the session would keep the
// lease for as long as the process lives.
func TestReleaseWithAnEndedContext(t *testing.T) {
	t.Parallel()
	one, other := open(t, node(t), 10*time.Second), open(t, node(t), 10*time.Second)
	lease := acquire(t, one, "key")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := lease.Release(ended); err != nil && ended.Err() == nil {
		t.Error(err)
	}
	release(t, acquire(t, other, "key"), nil)
}

// The TTL is what the server grants.
func TestTimeoutIsGranted(t *testing.T) {
	t.Parallel()
	l := open(t, node(t), 10*time.Millisecond)
	began := time.Now()
	lease := acquire(t, l, "key")
	until := lease.(strategies.Timed).ValidUntil()
	if least := began.Add(200 * time.Millisecond); until.Before(least) { // two ticks
		t.Errorf("it is valid for %v, which is less than the server grants", until.Sub(began))
	}
	release(t, lease, nil)
}

// Who closes while holding leaves the lease to its TTL, and can still release it; then it is
// another's.
func TestCloseWithALease(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second // a busy machine is late with what keeps the session
	one, other := open(t, node(t), ttl), open(t, node(t), ttl)
	released, kept := acquire(t, one, "released"), acquire(t, one, "kept")
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	release(t, released, nil)
	release(t, released, strategies.ErrNotHeld)
	release(t, acquire(t, other, "released"), nil)
	next := acquire(t, other, "kept")
	if until := kept.(strategies.Timed).ValidUntil(); time.Now().Before(until) {
		t.Errorf("another got it %v before it ceased to be valid", time.Until(until))
	}
	select {
	case <-kept.(strategies.Watched).Lost():
	case <-time.After(drive.Bound):
		t.Error("its loss was not told")
	}
	release(t, kept, strategies.ErrNotHeld)
	release(t, next, nil)
}
