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

// Of a newcomer's lock all checks, one after the other on one server, name the faults that are there and no others, and
// leave nothing on the server. A lock that ignores the Prefix has the same keys in all checks.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		subject
		promises, also []string // those broken for sure, and those that the same faults may break
	}{
		"two faults": {
			bare("dialsItself blind noTTL"),
			[]string{"only the owner releases", "a dead holder's lock frees by itself"},
			[]string{"a late release is told so and harms nobody"},
		},
		"no tokens, and no Prefix": {
			bare("ignoresPrefix").but(func(i *strategies.Info) { i.Claims.Fencing = true }),
			[]string{"fencing tokens grow"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			fixture := test.on(server.Addr)
			fixture.Patience = 3 * time.Second
			found := map[string]bool{}
			for _, verdict := range locktest.Judge(t.Context(), fixture, test.info) {
				t.Log(verdict)
				for _, failure := range verdict.Failures {
					found[failure.Promise] = true
				}
				if verdict.Outcome == locktest.NotJudged {
					t.Error(verdict)
				}
			}
			for _, promise := range test.promises {
				if !found[promise] {
					t.Errorf("the suite does not say that %q is broken", promise)
				}
			}
			for promise := range found {
				if !slices.Contains(slices.Concat(test.promises, test.also), promise) {
					t.Errorf("the suite says that %q is broken, which is not", promise)
				}
			}
			for _, left := range server.Client(t).Keys(t.Context(), "*").Val() {
				if !strings.HasSuffix(left, ":fence") { // which it declares
					t.Errorf("the checks left %.50q", left)
				}
			}
		})
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
