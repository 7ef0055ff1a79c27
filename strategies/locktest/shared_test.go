package locktest_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// A check that fails leaves nothing behind in which the next one would fail.
func TestChecksShareAServer(t *testing.T) {
	t.Parallel()
	fencing := plainInfo
	fencing.Claims.Fencing = true // it has no tokens
	for _, test := range []struct {
		check string
		fault plainFault
		info  strategies.Info
	}{
		{"fencing", plainFault{}, fencing},
		{"dead holder", plainFault{setsNoTTL: true}, plainInfo},
	} {
		t.Run(test.check, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			test.fault.key = ignoresPrefix
			fixture := asDocumented(server.Addr, test.fault)
			fixture.Patience = 4 * time.Second
			if v := check(t, test.check).Judge(t.Context(), fixture, test.info); v.Outcome != locktest.Broken {
				t.Fatalf("a lock with a fault: %v", v)
			}
			if left := server.Client(t).Keys(t.Context(), "*").Val(); len(left) > 0 {
				t.Errorf("the check left %q", left)
			}
			correct := asDocumented(server.Addr, plainFault{key: ignoresPrefix})
			if v := check(t, "dead holder").Judge(t.Context(), correct, plainInfo); v.Outcome != locktest.Passed {
				t.Errorf("a correct lock, on the same server: %v", v)
			}
		})
	}
}

// A lock that somebody held before the check is not the fault of the lock that is judged. What
// else stands on the server excuses nothing.
func TestTakenBefore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, key := range []string{"the-only-lock", "{", "unrelated"} {
		if err := server.Client(t).Set(t.Context(), key, "another's", 5*time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		check   string
		fault   plainFault
		outcome locktest.Outcome
		because string // a regular expression
	}{
		{"acquire and release", plainFault{key: theOnly}, locktest.NotJudged, `^"the-only-lock" was taken, PTTL [1-4]m\d+s$`},
		{"strange keys", plainFault{key: ignoresPrefix}, locktest.NotJudged, `^"{" was taken, PTTL [1-4]m\d+s$`},
		{"stranger", plainFault{comparesNoOwner: true}, locktest.Broken, `^$`},
	} {
		fixture := asDocumented(server.Addr, test.fault)
		fixture.Patience = 2 * time.Second
		v := check(t, test.check).Judge(t.Context(), fixture, plainInfo)
		if v.Outcome != test.outcome || !regexp.MustCompile(test.because).MatchString(v.Because) {
			t.Errorf("%v, want %v, because %s", v, test.outcome, test.because)
		}
		if (v.Outcome == locktest.NotJudged) != (len(v.Failures) == 0) {
			t.Errorf("%v with failures %q", v.Outcome, v.Failures)
		}
	}
	if n := server.Client(t).Exists(t.Context(), "the-only-lock", "{", "unrelated").Val(); n != 3 {
		t.Errorf("of three keys of others %d are left", n)
	}
}

// falseFails judges a lock by all checks on one server, as the package's comment has it, and
// returns the failures of checks that it passes on servers of its own.
func falseFails(ctx context.Context, t *testing.T, shared locktest.Fixture, alone func(t *testing.T) locktest.Fixture, info strategies.Info) (failed int, lies []string) {
	t.Helper()
	for _, v := range locktest.Judge(ctx, shared, info) {
		if v.Outcome != locktest.Broken {
			continue
		}
		failed++
		if passes(ctx, t, check(t, v.Check), alone, info) {
			lies = append(lies, v.String())
		}
	}
	return failed, lies
}

// passes says whether the lock passes a check on servers of its own each of three times: some
// faults show only now and then.
func passes(ctx context.Context, t *testing.T, c locktest.Check, alone func(t *testing.T) locktest.Fixture, info strategies.Info) bool {
	t.Helper()
	for range 3 {
		if v := c.Judge(ctx, alone(t), info); v.Outcome != locktest.Passed {
			return false
		}
	}
	return true
}

// On one server the suite says of a lock that ignores the Prefix what it says on servers of
// its own: the fault that is there, and no others. This lock claims fencing tokens and has none,
// and who looks for one still holds it then.
func TestNoFalseFails(t *testing.T) {
	t.Parallel()
	fixture := func(t *testing.T) locktest.Fixture {
		f := asDocumented(redistest.Start(t).Addr, plainFault{key: ignoresPrefix})
		f.Rounds = 6
		return f
	}
	shared, info := fixture(t), plainInfo
	info.Claims.Fencing = true
	failed, lies := falseFails(t.Context(), t, shared, fixture, info)
	if failed == 0 {
		t.Error("the fault was not found")
	}
	for _, lie := range lies {
		t.Errorf("of %d FAILs this one is false: %s", failed, lie)
	}
	// A second run begins as the first one did.
	for name, want := range map[string]locktest.Outcome{"acquire and release": locktest.Passed, "fencing": locktest.Broken} {
		if v := check(t, name).Judge(t.Context(), shared, info); v.Outcome != want {
			t.Errorf("the second run: %v, want %v", v, want)
		}
	}
}
