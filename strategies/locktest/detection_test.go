package locktest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// lookResult counts the looks at one broken lock. A look is one run of the check that must detect the lock's fault.
type lookResult struct {
	looks, misses int
	took          time.Duration // in total, by all looks
	missed        []string      // the results of the last few misses
}

// detection counts, for each broken lock, how many looks detected its fault.
type detection struct {
	mu  sync.Mutex
	all map[string]lookResult // by the subject's name
}

const (
	mostMisses   = 1 // largest allowed number of misses for one broken lock
	looksAtATime = 8
)

// TestDetection judges every broken lock LOCKBENCH_LOOKS times (100 by default), for at most an hour in total. Each
// look is a single run of the check that must detect the lock's fault, because a user runs each check once. At most
// mostMisses looks at one lock may miss its fault. The test writes the share of successful looks to
// docs/evidence/DETECTION.md in the directory LOCKBENCH_DETECTION.
func TestDetection(t *testing.T) {
	dir := os.Getenv("LOCKBENCH_DETECTION")
	if dir == "" {
		t.Skip("slow: make soak runs it")
	}
	looks := 100
	if text := os.Getenv("LOCKBENCH_LOOKS"); text != "" {
		var err error
		if looks, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	d := &detection{all: map[string]lookResult{}}
	d.atATime(ctx, t, looks)
	if err := os.WriteFile(filepath.Join(dir, "docs", "evidence", "DETECTION.md"), d.table(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range broken() {
		got := d.all[s.name]
		if got.misses > mostMisses {
			t.Errorf("%s: missed %d times in %d looks: %q", s.name, got.misses, got.looks, got.missed)
		}
	}
}

// atATime judges every broken lock once, then every lock a second time, and so on, often times in total. If ctx ends
// before that, all locks have had nearly the same number of looks.
func (d *detection) atATime(ctx context.Context, t *testing.T, often int) {
	var all errgroup.Group
	all.SetLimit(looksAtATime)
	for n := range often {
		for _, s := range broken() {
			all.Go(func() error {
				if ctx.Err() == nil {
					t.Run(fmt.Sprint(s.name, " ", n+1), func(t *testing.T) { d.look(ctx, t, s) })
				}
				return nil
			})
		}
	}
	_ = all.Wait()
}

// look judges s once, by the check that must detect its fault, and adds the result to d. It does not count a check that
// ctx has cancelled.
func (d *detection) look(ctx context.Context, t *testing.T, s subject) {
	v := check(t, s.check).Judge(ctx, s.fixture(t), s.info)
	if errors.Is(v.Err, context.DeadlineExceeded) && ctx.Err() != nil { // the test was cancelled
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.all[s.name]
	had.looks++
	had.took += v.Took
	if !s.found(v) {
		had.misses++
		had.missed = append(had.missed, v.String())
		had.missed = had.missed[max(0, len(had.missed)-5):]
	}
	d.all[s.name] = had
}

func (d *detection) table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# How often the suite finds a fault

Package strategies/locktest is tested on correct locks with one planted fault each. A user runs the suite once, so each
row reports how often one run finds the fault. A look is one run of the check that must detect the fault, on servers
that no other check uses. A look succeeds only if the check reports the expected promise as broken. At most %d look at
each lock may miss.

Written by %[2]s on %[3]s, %[4]s/%[5]s with %[6]d cores, %[7]d looks at a time.

| the lock has this fault | the check | the promise | looks | missed | found | a look takes |
| --- | --- | --- | ---: | ---: | ---: | ---: |
`, mostMisses, "`make soak`", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		looksAtATime)
	var sum lookResult
	for _, s := range broken() {
		got, looked := d.all[s.name], "0 | – | – | –"
		if n := got.looks; n > 0 {
			found := 100 * float64(n-got.misses) / float64(n)
			looked = fmt.Sprintf("%d | %d | %.0f %% | %.1f s", n, got.misses, found, got.took.Seconds()/float64(n))
		}
		sum.looks, sum.misses = sum.looks+got.looks, sum.misses+got.misses
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.name, s.check, s.promise, looked)
	}
	fmt.Fprintf(&b, "\n%d broken lockers, %d looks, %d missed.\n", len(broken()), sum.looks, sum.misses)
	return b.Bytes()
}

func TestChecksDescribeThemselves(t *testing.T) {
	names := map[string]bool{}
	for _, c := range locktest.Checks() {
		if names[c.Name] {
			t.Errorf("two checks are called %q", c.Name)
		}
		names[c.Name] = true
		if c.Promise == "" || !strings.HasSuffix(c.Proves, ".") || strings.Count(c.Proves, ".") != 1 {
			t.Errorf("%s: promise %q, proves %q: want one sentence", c.Name, c.Promise, c.Proves)
		}
	}
}

func verdicts(results []locktest.Result) map[string]locktest.Verdict {
	all := map[string]locktest.Verdict{}
	for _, v := range results {
		all[v.Check] = v.Verdict
	}
	return all
}

// TestJudgeWithoutServers judges an in-process lock with a Fixture that has only Open. The checks that need servers
// must be NotApplicable, and no check may fail or lack a verdict.
func TestJudgeWithoutServers(t *testing.T) {
	s := inProcess("", 1, fifo)
	results := locktest.Judge(t.Context(), locktest.Fixture{Open: s.open, Rounds: 2}, s.info)
	if len(results) != len(locktest.Checks()) {
		t.Errorf("%d results of %d checks", len(results), len(locktest.Checks()))
	}
	got := verdicts(results)
	for check, want := range map[string]locktest.Verdict{
		"acquire and release": locktest.Passed, "fifo": locktest.Passed, "fencing": locktest.NotApplicable,
		"permits": locktest.NotApplicable, "lost reply": locktest.NotApplicable, "dead nodes": locktest.NotApplicable,
	} {
		if got[check] != want {
			t.Errorf("%s: %v, want %v", check, got[check], want)
		}
	}
	for _, v := range results {
		if (v.Because == "") != (v.Verdict == locktest.Passed) || len(v.Failures) > 0 || v.Proves == "" {
			t.Errorf("%+v", v)
		}
	}
}

// TestSkippedChecksHaveReasons runs checks on fixtures that lack a function or whose functions fail. No such check may
// pass, and its result must give the reason.
func TestSkippedChecksHaveReasons(t *testing.T) {
	s := polling("")
	node := redistest.Start(t).Node(t)
	bare := locktest.Fixture{Open: s.open, Nodes: func() []goredis.Node { return []goredis.Node{node} }}
	broken := errors.New("no such process")
	failing := bare
	failing.Pause = func() error { return broken }
	failing.Resume = failing.Pause
	failing.Kill = func(int) error { return broken }
	failing.Revive = func(int) error { return nil }
	ending := bare
	ending.Kill = func(int) error { runtime.Goexit(); return nil }
	ending.Revive = failing.Revive
	slow := errors.New("the driver did not respond to the request open within 30s")
	closed, late, unprepared := bare, bare, bare
	closed.Open = func(goredis.Config) (strategies.Locker, error) { return nil, slow }
	opened := 0
	late.Open = func(c goredis.Config) (strategies.Locker, error) {
		if opened++; opened > 1 {
			return nil, slow
		}
		return s.open(c)
	}
	unprepared.Open = func(c goredis.Config) (strategies.Locker, error) {
		locker, err := s.open(c)
		return unready{locker, slow}, err
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		what, check string
		ctx         context.Context
		fixture     locktest.Fixture
		want        locktest.Verdict
		err         error
		because     string
	}{
		{
			"no servers", "exclusion", t.Context(),
			locktest.Fixture{Open: s.open},
			locktest.NotTried, nil,
			"has no servers",
		},
		{
			"no Options", "exclusion", t.Context(),
			locktest.Fixture{Open: s.open, Nodes: func() []goredis.Node {
				return make([]goredis.Node, 1)
			}},
			locktest.NotJudged, nil, "has no Options",
		},
		{"no Pause", "lost reply", t.Context(), bare, locktest.NotTried, nil, "cannot pause"},
		{"no Kill", "restarted server", t.Context(), bare, locktest.NotTried, nil, "cannot kill"},
		{"no Failover", "failover", t.Context(), bare, locktest.NotTried, nil, "cannot fail over"},
		{"no Sentinel", "sentinel", t.Context(), bare, locktest.NotTried, nil, "that Sentinel watches"},
		{"no Clock", "clock set back", t.Context(), bare, locktest.NotTried, nil, "whose clock can be set"},
		{"Pause fails", "lost reply", t.Context(), failing, locktest.NotJudged, broken, "no such process"},
		{"Kill fails", "restarted server", t.Context(), failing, locktest.NotJudged, broken, "no such process"},
		{"Open fails", "try-lock", t.Context(), closed, locktest.NotJudged, slow, "open: the driver did not respond"},
		{"a second Open fails", "idle keys", t.Context(), late, locktest.NotJudged, slow, "open: the driver did not respond"},
		{
			"Prepare fails", "try-lock", t.Context(), unprepared, locktest.NotJudged, slow,
			"prepare: the driver did not respond",
		},
		{
			"Kill ends the goroutine", "restarted server", t.Context(), ending, locktest.NotJudged, nil,
			"outside the suite",
		},
		{"the context has ended", "exclusion", ended, bare, locktest.NotJudged, context.Canceled, "check was cancelled"},
	} {
		t.Run(test.what, func(t *testing.T) {
			v := check(t, test.check).Judge(test.ctx, test.fixture, s.info)
			if v.Verdict != test.want || !strings.Contains(v.Because, test.because) || test.err != nil &&
				!errors.Is(v.Err, test.err) {
				t.Errorf("%+v, want %v because %q", v, test.want, test.because)
			}
		})
	}
}

// unready is a lock whose Prepare returns the embedded error.
type unready struct {
	strategies.Locker
	error
}

func (u unready) Prepare(context.Context, []string) error { return u.error }

// TestLimits judges a lock that fails the check "slow answer" and passes the check "try-lock". The verdict on the
// failed check must be Admitted if the lock's Info declares this check as a limit, and Broken if not. The passed check
// must not be Admitted, even if it is declared as a limit.
func TestLimits(t *testing.T) {
	s := polling("handsOutLate")
	node := redistest.Start(t).Node(t)
	fixture := locktest.Fixture{Open: s.open, Nodes: func() []goredis.Node { return []goredis.Node{node} }}
	limits := []strategies.Limit{
		{Check: "slow answer", Because: "it never looks"},
		{Check: "try-lock", Because: "it may"},
	}
	for _, test := range []struct {
		check   string
		limits  []strategies.Limit
		want    locktest.Verdict
		because string
	}{
		{"slow answer", nil, locktest.Broken, ""},
		{"slow answer", limits[1:], locktest.Broken, ""},
		{"slow answer", limits, locktest.Admitted, "it never looks"},
		{"try-lock", limits, locktest.Passed, ""},
	} {
		s.info.Limits = test.limits
		v := check(t, test.check).Judge(t.Context(), fixture, s.info)
		if v.Verdict != test.want || v.Because != test.because || len(v.Failures) == 0 && test.want != locktest.Passed {
			t.Errorf("with %v: %+v, want %v because %q", test.limits, v, test.want, test.because)
		}
	}
}

// bareLock is a lock as a first-time author would write it: the lock and its leases have only the required methods.
type bareLock struct{ strategies.Locker }

type bareLease struct{ strategies.Lease }

func (l bareLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := l.Locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return bareLease{lease}, nil
}

// bare returns the same subject as polling, with its lock wrapped in a bareLock.
func bare(names string) subject {
	s := polling(names)
	open := s.open
	s.open = func(c goredis.Config) (strategies.Locker, error) {
		l, err := open(c)
		return bareLock{l}, err
	}
	return s
}

// on returns a fixture for the server at addr, like the fixture in the example of the package comment.
func (s subject) on(addr string) locktest.Fixture {
	return locktest.Fixture{Open: s.open, Rounds: 6, Nodes: func() []goredis.Node {
		return []goredis.Node{{Options: &redis.UniversalOptions{Addrs: []string{addr}}}}
	}}
}

// TestNewcomer judges locks as first-time authors write them. All checks of a lock run one after the other on one
// server, with go-redis's default options. Depending on the case, the lock, Nodes or the test opens the clients. The
// checks must report exactly the lock's faults, and leave no key that the lock does not declare. One lock ignores the
// Prefix, which is not a fault.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	noTokens := bare("ignoresPrefix").but(func(i *strategies.Info) { i.Claims.Fencing = true })
	for name, test := range map[string]struct {
		subject
		client         func(*locktest.Fixture, func() redis.UniversalClient)
		promises, also []string // promises that must be, and promises that may be reported as broken
	}{
		"two faults": {
			bare("dialsItself blind noTTL"), nil,
			[]string{"only the owner releases", "a dead holder's lock frees by itself"},
			[]string{"a late release returns ErrNotHeld and does not affect the next holder"},
		},
		"no tokens, and no Prefix": {noTokens, nil, []string{"fencing tokens increase"}, nil},

		"a client made by the lock": {bare("dialsItself"), nil, nil, nil},
		"a client made by Nodes, and another of the suite": {
			bare(""), func(f *locktest.Fixture, connect func() redis.UniversalClient) {
				nodes := f.Nodes
				f.Nodes = func() []goredis.Node {
					all := nodes()
					all[0].Client = connect() // open until the test ends
					return all
				}
			}, nil, nil,
		},
		"a client shared by all": {
			bare(""), func(f *locktest.Fixture, connect func() redis.UniversalClient) {
				client, open := connect(), f.Open
				f.Clients = []redis.UniversalClient{client}
				f.Open = func(c goredis.Config) (strategies.Locker, error) {
					c.Nodes[0].Client = client
					return open(c)
				}
			}, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			fixture := test.on(server.Addr)
			fixture.Drawings = t.TempDir()
			if len(test.promises) > 0 { // most broken promises show only after the patience
				fixture.Patience = 8 * time.Second
			}
			if test.client != nil {
				test.client(&fixture, func() redis.UniversalClient {
					client := redis.NewClient(&redis.Options{Addr: server.Addr})
					t.Cleanup(func() { _ = client.Close() })
					return client
				})
			}
			found := map[string]bool{}
			for _, result := range locktest.Judge(t.Context(), fixture, test.info) {
				t.Log(result)
				unrecovered := slices.Contains(test.promises, "a dead holder's lock frees by itself")
				if result.Verdict == locktest.NotJudged ||
					strings.Contains(result.Because, "other checks "+
						"rely") && !unrecovered { // no fault here breaks another basic promise
					t.Error(result)
				}
				for _, failure := range result.Failures {
					found[failure.Promise] = true
				}
			}
			for _, promise := range test.promises {
				if !found[promise] {
					t.Errorf("the suite did not report the promise %q as broken", promise)
				}
			}
			for promise := range found {
				if !slices.Contains(slices.Concat(test.promises, test.also), promise) {
					t.Errorf("the suite reported the promise %q as broken, but it is kept", promise)
				}
			}
			for _, left := range server.Client(t).Keys(t.Context(), "*").Val() {
				if !strings.HasSuffix(left, ":fence") { // the lock declares this key
					t.Errorf("the checks left %.50q", left)
				}
			}
		})
	}
}

func check(t *testing.T, name string) locktest.Check {
	t.Helper()
	checks := locktest.Checks()
	i := slices.IndexFunc(checks, func(c locktest.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check is called %q", name)
	}
	return checks[i]
}
