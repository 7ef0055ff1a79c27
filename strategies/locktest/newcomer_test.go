package locktest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// plainInfo is what its author says of it.
var plainInfo = strategies.Info{
	Name: "plain", Capacity: 1, Nodes: 1, Claims: strategies.Claims{Exclusion: true, Recovery: true},
}

// plainLock is a lock as somebody writes it who has read no more than the package's
// documentation: SET NX PX, polled.
type plainLock struct {
	plainFault
	client *redis.Client
	config goredis.Config
	mine   bool // the client is closed with the lock
	closed chan struct{}
	once   sync.Once
}

// plainFault is what is wrong with a plainLock. The zero one is nothing.
type plainFault struct {
	comparesNoOwner bool // a release deletes whatever is there
	setsNoTTL       bool
	leavesGoroutine bool // when it is closed
	leavesClient    bool // the one that it has made

	key func(config goredis.Config, key string) string // its name in Redis; nil for Config.Key
}

// ignoresPrefix is how many a lock names its keys.
func ignoresPrefix(_ goredis.Config, key string) string { return key }

// theOnly is what a lock calls all its keys that has one.
func theOnly(goredis.Config, string) string { return "the-only-lock" }

func (l *plainLock) name(key string) string {
	if l.key == nil {
		return l.config.Key(key)
	}
	return l.key(l.config, key)
}

func (l *plainLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	select {
	case <-l.closed:
		return nil, strategies.ErrClosed
	default:
	}
	lease := &plainLease{lock: l, key: l.name(key), token: uuid.NewString()}
	ttl := l.config.TTL
	if l.setsNoTTL {
		ttl = 0
	}
	for {
		asked := time.Now()
		got, err := l.client.SetNX(ctx, lease.key, lease.token, ttl).Result()
		switch {
		case err != nil:
			return nil, fmt.Errorf("acquire %q: %w", key, err)
		case got && time.Since(asked) < l.config.TTL*9/10:
			return lease, nil
		} // else somebody has it, or it may have run out on the way
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire %q: %w", key, ctx.Err())
		}
	}
}

func (l *plainLock) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		if l.leavesGoroutine {
			go func() { time.Sleep(time.Minute) }()
		}
		if l.mine && !l.leavesClient {
			err = l.client.Close()
		}
	})
	return err
}

type plainLease struct {
	lock       *plainLock
	key, token string
}

var plainRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

func (lease *plainLease) Release(ctx context.Context) error {
	var n int64
	var err error
	if lease.lock.comparesNoOwner {
		n, err = lease.lock.client.Del(ctx, lease.key).Result()
	} else {
		n, err = plainRelease.Run(ctx, lease.lock.client, []string{lease.key}, lease.token).Int64()
	}
	switch {
	case err != nil:
		return fmt.Errorf("release %q: %w", lease.key, err)
	case n == 0:
		return strategies.ErrNotHeld
	}
	return nil
}

// onDefaults is the fixture of a plainLock whose every instance has a client of its own,
// with go-redis's defaults.
func onDefaults(addr string, fault plainFault) locktest.Fixture {
	return locktest.Fixture{
		Open: func(c goredis.Config) (strategies.Locker, error) {
			client := redis.NewClient(&redis.Options{Addr: addr})
			return &plainLock{plainFault: fault, client: client, mine: true, config: c, closed: make(chan struct{})}, nil
		},
		Nodes: func() []goredis.Node {
			return []goredis.Node{{Options: &redis.UniversalOptions{Addrs: []string{addr}}}}
		},
	}
}

// asDocumented is the fixture of the package's comment, with a plainLock.
func asDocumented(addr string, fault plainFault) locktest.Fixture {
	fixture := onDefaults(addr, fault)
	fixture.Open = func(c goredis.Config) (strategies.Locker, error) {
		return &plainLock{plainFault: fault, client: c.Nodes[0].Client.(*redis.Client), config: c, closed: make(chan struct{})}, nil
	}
	return fixture
}

// A newcomer's lock with two faults: both are named, and nothing else is.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	fixture := onDefaults(addr, plainFault{comparesNoOwner: true, setsNoTTL: true})
	fixture.Patience = 3 * time.Second
	found := map[string]bool{}
	for _, verdict := range locktest.Judge(t.Context(), fixture, plainInfo) {
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
	for name, fixture := range map[string]func(t *testing.T, addr string) locktest.Fixture{
		"made by Open": func(_ *testing.T, addr string) locktest.Fixture { return onDefaults(addr, plainFault{}) },
		"made by Nodes, and another of the suite": func(t *testing.T, addr string) locktest.Fixture {
			return locktest.Fixture{
				Open: func(c goredis.Config) (strategies.Locker, error) {
					return &plainLock{client: c.Nodes[0].Client.(*redis.Client), config: c, closed: make(chan struct{})}, nil
				},
				Nodes: func() []goredis.Node { // each client is open until the test ends
					options := &redis.UniversalOptions{Addrs: []string{addr}}
					client := redis.NewUniversalClient(options)
					t.Cleanup(func() { _ = client.Close() })
					return []goredis.Node{{Client: client, Options: options}}
				},
			}
		},
		"shared by all": func(t *testing.T, addr string) locktest.Fixture {
			client := redis.NewClient(&redis.Options{Addr: addr})
			t.Cleanup(func() { _ = client.Close() })
			fixture := onDefaults(addr, plainFault{})
			fixture.Clients = []redis.UniversalClient{client}
			fixture.Open = func(c goredis.Config) (strategies.Locker, error) {
				return &plainLock{client: client, config: c, closed: make(chan struct{})}, nil
			}
			return fixture
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := fixture(t, redistest.Start(t).Addr)
			fixture.Rounds = 6
			for _, verdict := range locktest.Judge(t.Context(), fixture, plainInfo) {
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
	for what, fault := range map[string]plainFault{
		"goroutines are left":  {leavesGoroutine: true},
		"connections are left": {leavesClient: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			fixture := onDefaults(redistest.Start(t).Addr, fault)
			fixture.Patience = 3 * time.Second
			verdict := check(t, "acquire and release").Judge(t.Context(), fixture, plainInfo)
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
