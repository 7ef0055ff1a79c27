package locktest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// bareLock is a lock as somebody writes it who has read no more than the package's documentation: it
// and its leases can do what they must, and nothing else.
type bareLock struct{ strategies.Locker }

type bareLease struct{ strategies.Lease }

func (l bareLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := l.Locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return bareLease{lease}, nil
}

// bare is a bareLock that is polled, with faults.
func bare(names string) subject {
	s := polling(names)
	open := s.open
	s.open = func(c goredis.Config) (strategies.Locker, error) {
		l, err := open(c)
		return bareLock{l}, err
	}
	return s
}

// on is the fixture of the package's comment.
func (s subject) on(addr string) locktest.Fixture {
	return locktest.Fixture{Open: s.open, Rounds: 6, Nodes: func() []goredis.Node {
		return []goredis.Node{{Options: &redis.UniversalOptions{Addrs: []string{addr}}}}
	}}
}

// A newcomer's lock with two faults: both are named, and nothing else is.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	s := bare("dialsItself blind noTTL")
	fixture := s.on(redistest.Start(t).Addr)
	fixture.Patience = 3 * time.Second
	found := map[string]bool{}
	for _, verdict := range locktest.Judge(t.Context(), fixture, s.info) {
		t.Log(verdict)
		for _, failure := range verdict.Failures {
			found[failure.Promise] = true
		}
		if verdict.Outcome == locktest.NotJudged {
			t.Error(verdict)
		}
	}
	for _, promise := range []string{"only the owner releases", "a dead holder's lock frees by itself"} {
		if !found[promise] {
			t.Errorf("the suite does not say that %q is broken", promise)
		}
		delete(found, promise)
	}
	delete(found, "a late release is told so and harms nobody") // the same fault
	for promise := range found {
		t.Errorf("the suite says that %q is broken, which is not", promise)
	}
}

// A correct lock passes on go-redis's defaults, whosever the client is.
func TestACorrectLockOnADefaultClient(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*locktest.Fixture, func() redis.UniversalClient){
		"made by the lock": func(f *locktest.Fixture,
			_ func() redis.UniversalClient,
		) {
			f.Open = bare("dialsItself").open
		},
		"made by Nodes, and another of the suite": func(f *locktest.Fixture, connect func() redis.UniversalClient) {
			nodes := f.Nodes
			f.Nodes = func() []goredis.Node {
				all := nodes()
				all[0].Client = connect() // open until the test ends
				return all
			}
		},
		"shared by all": func(f *locktest.Fixture, connect func() redis.UniversalClient) {
			client, open := connect(), f.Open
			f.Clients = []redis.UniversalClient{client}
			f.Open = func(c goredis.Config) (strategies.Locker, error) {
				c.Nodes[0].Client = client
				return open(c)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, addr := bare(""), redistest.Start(t).Addr
			fixture := s.on(addr)
			change(&fixture, func() redis.UniversalClient {
				client := redis.NewClient(&redis.Options{Addr: addr})
				t.Cleanup(func() { _ = client.Close() })
				return client
			})
			for _, verdict := range locktest.Judge(t.Context(), fixture, s.info) {
				if verdict.Outcome == locktest.Broken || verdict.Outcome == locktest.NotJudged {
					t.Error(verdict)
				}
			}
		})
	}
}

// What a lock leaves on such a client is found all the same.
func TestLeaksOnADefaultClient(t *testing.T) {
	t.Parallel()
	for fault, what := range map[string]string{
		"leavesGoroutine": "goroutines are left",
		"leavesClient":    "connections are left",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := bare("dialsItself " + fault)
			fixture := s.on(redistest.Start(t).Addr)
			fixture.Patience = 3 * time.Second
			verdict := check(t, "acquire and release").Judge(t.Context(), fixture, s.info)
			if verdict.Outcome != locktest.Broken || !strings.Contains(verdict.String(), what) {
				t.Error(verdict)
			}
		})
	}
}

// check is the suite's of that name.
func check(t *testing.T, name string) locktest.Check {
	t.Helper()
	checks := locktest.Checks()
	i := slices.IndexFunc(checks, func(c locktest.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check is called %q", name)
	}
	return checks[i]
}

// claimsFencing has a lock claim tokens that it does not have.
func claimsFencing(i *strategies.Info) { i.Claims.Fencing = true }

// A check that fails leaves nothing behind in which the next one would fail.
func TestChecksShareAServer(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]subject{
		"fencing":     bare("ignoresPrefix").but(claimsFencing),
		"dead holder": bare("ignoresPrefix noTTL"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			fixture := s.on(server.Addr)
			fixture.Patience = 4 * time.Second
			if v := check(t, name).Judge(t.Context(), fixture, s.info); v.Outcome != locktest.Broken {
				t.Fatalf("a lock with a fault: %v", v)
			}
			if left := server.Client(t).Keys(t.Context(), "*").Val(); len(left) > 0 {
				t.Errorf("the check left %q", left)
			}
			right := bare("ignoresPrefix")
			if v := check(t, "dead holder").Judge(t.Context(), right.on(server.Addr),
				right.info); v.Outcome != locktest.Passed {
				t.Errorf("a correct lock, on the same server: %v", v)
			}
		})
	}
}

// falseFails judges a lock by all checks on one server, as the package's comment has it, and returns
// the failures of checks that it passes on servers of its own, each of three times: some faults show
// only now and then.
func falseFails(
	ctx context.Context, t *testing.T, shared locktest.Fixture, alone func(t *testing.T) locktest.Fixture,
	info strategies.Info,
) (failed int, lies []string) {
	t.Helper()
	for _, v := range locktest.Judge(ctx, shared, info) {
		if v.Outcome != locktest.Broken {
			continue
		}
		failed++
		passed := 0
		for passed < 3 && check(t, v.Check).Judge(ctx, alone(t), info).Outcome == locktest.Passed {
			passed++
		}
		if passed == 3 {
			lies = append(lies, v.String())
		}
	}
	return failed, lies
}

// On one server the suite says of a lock that ignores the Prefix what it says on servers of its own:
// the fault that is there, and no others. This lock claims fencing tokens and has none, and who looks
// for one still holds it then.
func TestNoFalseFails(t *testing.T) {
	t.Parallel()
	s := bare("ignoresPrefix").but(claimsFencing)
	fixture := func(t *testing.T) locktest.Fixture { return s.on(redistest.Start(t).Addr) }
	shared := fixture(t)
	failed, lies := falseFails(t.Context(), t, shared, fixture, s.info)
	if failed == 0 {
		t.Error("the fault was not found")
	}
	for _, lie := range lies {
		t.Errorf("of %d FAILs this one is false: %s", failed, lie)
	}
	// A second run begins as the first one did.
	for name, want := range map[string]locktest.Outcome{
		"acquire and release": locktest.Passed, "fencing": locktest.Broken,
	} {
		if v := check(t, name).Judge(t.Context(), shared, s.info); v.Outcome != want {
			t.Errorf("the second run: %v, want %v", v, want)
		}
	}
}
