package locktest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func TestChecksSayWhatTheyProve(t *testing.T) {
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

func outcomes(verdicts []locktest.Verdict) map[string]locktest.Outcome {
	all := map[string]locktest.Outcome{}
	for _, v := range verdicts {
		all[v.Check] = v.Outcome
	}
	return all
}

// A lock in the process needs no more than Open.
func TestJudgeWithoutServers(t *testing.T) {
	s := inProcess("", 1, fifo)
	verdicts := locktest.Judge(t.Context(), locktest.Fixture{Open: s.open, Rounds: 2}, s.info)
	if len(verdicts) != len(locktest.Checks()) {
		t.Errorf("%d verdicts of %d checks", len(verdicts), len(locktest.Checks()))
	}
	got := outcomes(verdicts)
	for check, want := range map[string]locktest.Outcome{
		"acquire and release": locktest.Passed, "fifo": locktest.Passed, "fencing": locktest.NotApplicable,
		"permits": locktest.NotApplicable, "lost reply": locktest.NotApplicable, "dead nodes": locktest.NotApplicable,
	} {
		if got[check] != want {
			t.Errorf("%s: %v, want %v", check, got[check], want)
		}
	}
	for _, v := range verdicts {
		if (v.Because == "") != (v.Outcome == locktest.Passed) || len(v.Failures) > 0 || v.Proves == "" {
			t.Errorf("%+v", v)
		}
	}
}

// What the fixture cannot do is said, and does not pass.
func TestWhatIsNotTried(t *testing.T) {
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
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		what, check string
		ctx         context.Context
		fixture     locktest.Fixture
		want        locktest.Outcome
		err         error
		because     string
	}{
		{
			"no servers", "exclusion", t.Context(),
			locktest.Fixture{Open: s.open},
			locktest.NotTried, nil,
			"has no servers",
		},
		{"no Pause", "lost reply", t.Context(), bare, locktest.NotTried, nil, "cannot pause"},
		{"no Kill", "restarted server", t.Context(), bare, locktest.NotTried, nil, "cannot kill"},
		{"no Failover", "failover", t.Context(), bare, locktest.NotTried, nil, "cannot fail over"},
		{"no Clock", "clock set back", t.Context(), bare, locktest.NotTried, nil, "whose clock can be set"},
		{"Pause fails", "lost reply", t.Context(), failing, locktest.NotJudged, broken, "no such process"},
		{"Kill fails", "restarted server", t.Context(), failing, locktest.NotJudged, broken, "no such process"},
		{
			"Kill ends the goroutine", "restarted server", t.Context(), ending, locktest.NotJudged, nil,
			"outside the suite",
		},
		{"the context has ended", "exclusion", ended, bare, locktest.NotJudged, context.Canceled, "from outside"},
	} {
		t.Run(test.what, func(t *testing.T) {
			v := check(t, test.check).Judge(test.ctx, test.fixture, s.info)
			if v.Outcome != test.want || !strings.Contains(v.Because, test.because) || test.err != nil &&
				!errors.Is(v.Err, test.err) {
				t.Errorf("%+v, want %v because %q", v, test.want, test.because)
			}
		})
	}
}

// A check that a lock does not pass is one thing where its Info says so, and another where
// it does not. What the lock passes is not admitted.
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
		want    locktest.Outcome
		because string
	}{
		{"slow answer", nil, locktest.Broken, ""},
		{"slow answer", limits[1:], locktest.Broken, ""},
		{"slow answer", limits, locktest.Admitted, "it never looks"},
		{"try-lock", limits, locktest.Passed, ""},
	} {
		s.info.Limits = test.limits
		v := check(t, test.check).Judge(t.Context(), fixture, s.info)
		if v.Outcome != test.want || v.Because != test.because || len(v.Failures) == 0 && test.want != locktest.Passed {
			t.Errorf("with %v: %+v, want %v because %q", test.limits, v, test.want, test.because)
		}
	}
}
