package locktest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// firstVersion wraps a correct lock and replaces some of its methods. It represents the first version of a lock, in
// which some methods are not written yet.
type firstVersion struct {
	strategies.Locker
	acquire func(context.Context, strategies.Locker, string) (strategies.Lease, error)
	release func(context.Context, strategies.Lease) error

	tries, deafClose, unopened bool
}

func (f firstVersion) Close() error {
	if f.deafClose {
		select {}
	}
	return f.Locker.Close()
}

func (f firstVersion) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	acquire := f.acquire
	if acquire == nil {
		acquire = func(ctx context.Context, l strategies.Locker, key string) (strategies.Lease, error) {
			return l.Acquire(ctx, key)
		}
	}
	lease, err := acquire(ctx, f.Locker, key)
	if err != nil {
		return nil, err
	}
	return firstLease{lease, f.release, nil}, nil
}

// firstTrier is a firstVersion whose TryAcquire waits, as Acquire does.
type firstTrier struct{ firstVersion }

func (f firstTrier) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return f.Acquire(ctx, key)
}

// firstLease is a lease whose type is not comparable, because it contains a slice.
type firstLease struct {
	strategies.Lease
	release func(context.Context, strategies.Lease) error
	_       []string
}

func (l firstLease) Release(ctx context.Context) error {
	if l.release == nil {
		return l.Lease.Release(ctx)
	}
	return l.release(ctx, l.Lease)
}

var errUnwritten = errors.New("not yet written")

// firstVersions are locks that break a basic promise. check names the check that must detect this, with a result that
// contains the text seen. The suite must try no later check.
var firstVersions = []struct {
	name, check, seen string
	lock              firstVersion
}{
	{
		"it never releases", "acquire and release", "a free lock was not granted within",
		firstVersion{release: func(context.Context, strategies.Lease) error { return nil }},
	},
	{
		"its release fails", "acquire and release", "not yet written",
		firstVersion{release: func(context.Context, strategies.Lease) error { return errUnwritten }},
	},
	{
		"its release does not return", "acquire and release", "the call has not returned",
		firstVersion{release: func(context.Context, strategies.Lease) error { select {} }},
	},
	{
		"its acquire fails", "acquire and release", "not yet written",
		firstVersion{acquire: func(context.Context, strategies.Locker, string) (strategies.Lease, error) {
			return nil, errUnwritten
		}},
	},
	{
		"its acquire does not return", "acquire and release", "a free lock was not granted within",
		firstVersion{acquire: func(context.Context, strategies.Locker, string) (strategies.Lease, error) {
			select {}
		}},
	},
	{
		"it grants every acquire", "exclusion", "found more holders than permits",
		firstVersion{acquire: func(context.Context, strategies.Locker, string) (strategies.Lease, error) {
			return grantedLease{}, nil
		}},
	},
	{
		"it ignores contexts", "strange keys", "keeps waiting although its context has ended",
		firstVersion{acquire: func(_ context.Context, l strategies.Locker, key string) (strategies.Lease, error) {
			return l.Acquire(context.Background(), key)
		}},
	},
	{"its Close does not return", "acquire and release", "Close has not returned", firstVersion{deafClose: true}},
	{"its Open fails", "acquire and release", "not yet written", firstVersion{unopened: true}},
	{"its try-lock waits", "strange keys", "a try-lock has not returned", firstVersion{tries: true}},
}

// grantedLease is the lease of an Acquire that returns without taking the lock.
type grantedLease struct{}

func (grantedLease) Release(context.Context) error { return nil }

// open opens a correct lock and wraps it in f.
func (f firstVersion) open(c goredis.Config) (strategies.Locker, error) {
	if f.unopened {
		return nil, errUnwritten
	}
	locker, err := bare("").open(c)
	f.Locker = locker
	if f.tries {
		return firstTrier{f}, err
	}
	return f, err
}

// TestFirstVersions checks that the suite tries no further checks on a lock that breaks a basic promise. Otherwise each
// further check would fail because of the same fault, and would first wait for its full patience.
func TestFirstVersions(t *testing.T) {
	t.Parallel()
	for _, test := range firstVersions {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := bare("")
			s.open = test.lock.open
			fixture := s.on(redistest.Start(t).Addr)
			fixture.Patience, fixture.Drawings = 8*time.Second, t.TempDir()
			ended := false
			for _, v := range locktest.Judge(t.Context(), fixture, s.info) {
				switch {
				case v.Verdict == locktest.NotApplicable:
				case ended:
					if v.Verdict != locktest.NotTried || !strings.Contains(v.Because, test.check) {
						t.Errorf("%v, want it not tried because of %q", v, test.check)
					}
				case v.Check == test.check:
					ended = true
					want := locktest.Broken
					if test.lock.unopened {
						want = locktest.NotJudged
					}
					if v.Verdict != want || !strings.Contains(v.String(), test.seen) {
						t.Errorf("%v, want it %s with %q", v, want, test.seen)
					}
				case v.Verdict == locktest.NotTried || v.Verdict == locktest.NotJudged:
					t.Errorf("%v before %q", v, test.check)
				}
			}
		})
	}
}

// The check "refused writes" must pass on a lock whose leases are not comparable. Code that uses such a lease as a map
// key panics.
func TestLeasesNeedNotBeComparable(t *testing.T) {
	t.Parallel()
	s := bare("")
	s.open = firstVersion{}.open
	v := check(t, "refused writes").Judge(t.Context(), s.on(redistest.Start(t).Addr), s.info)
	if v.Verdict != locktest.Passed {
		t.Error(v)
	}
}

// firstVariable is the environment variable that enables TestRunOfAFirstVersion. Its value is the address of a server,
// or "no server" for a fixture that fails.
const firstVariable = "LOCKTEST_FIRST_VERSION"

// TestRunOfAFirstVersion runs the suite on a lock whose release fails. It is skipped unless firstVariable is set, as it
// is in the process that TestRunOnFirstVersions starts.
func TestRunOfAFirstVersion(t *testing.T) {
	which := os.Getenv(firstVariable)
	if which == "" {
		t.Skip("it is a part of TestRunOnFirstVersions")
	}
	s := bare("")
	s.open = firstVersions[1].lock.open
	locktest.Run(t, func(t *testing.T) locktest.Fixture {
		t.Helper()
		if which == "no server" {
			t.Fatal("there is no server")
		}
		return locktest.Fixture{Open: s.open, Nodes: func() []goredis.Node {
			return []goredis.Node{{Options: &redis.UniversalOptions{Addrs: []string{which}}}}
		}}
	}, s.info)
}

// TestRunOnFirstVersions checks what go test prints without -v for a lock that breaks a basic promise and for a fixture
// that fails. It must print a single failure, and say that the other checks were not tried.
func TestRunOnFirstVersions(t *testing.T) {
	t.Parallel()
	for which, want := range map[string][]string{
		redistest.Start(t).Addr: {
			"TestRunOfAFirstVersion/acquire_and_release: broken promise: a free lock can be acquired",
			"checks were not tried, because the check \"acquire and release\" found a promise broken on which other checks rely",
		},
		"no server": {"there is no server", "no check was tried, because the fixture of the first one failed"},
	} {
		run := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRunOfAFirstVersion$")
		run.Env = append(os.Environ(), firstVariable+"="+which)
		output, err := run.CombinedOutput()
		if err == nil {
			t.Errorf("the run on %s passed", which)
		}
		for _, text := range want {
			if !strings.Contains(string(output), text) {
				t.Errorf("the run on %s printed %s, want %q", which, output, text)
			}
		}
		if failures := strings.Count(string(output), "--- FAIL"); failures != 2 { // the test and its first check
			t.Errorf("the run on %s printed %d failures: %s", which, failures, output)
		}
	}
}
