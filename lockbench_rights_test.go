package lockbench_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads/spec"
)

// service makes a user with the rights that a strategy needs, less some.
func service(t *testing.T, server *redistest.Server, strategy string, without ...string) (address string) {
	t.Helper()
	s, err := strategies.Lookup(strategy)
	if err != nil {
		t.Fatal(err)
	}
	var args []any
	for rule := range strings.FieldsSeq(s.Info.Rights.SetUser("service", "lockbench:")) {
		args = append(args, strings.Replace(rule, "PASSWORD", "secret", 1))
	}
	for _, rule := range without {
		args = append(args, rule)
	}
	if err := server.Client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	return "redis://service:secret@" + server.Addr
}

func briefly(p *lockbench.Plan) {
	p.Floors = true
	p.Workload.Warmup, p.Workload.Duration = 0, spec.Duration(200*time.Millisecond)
}

// The line that list prints is enough for a run.
func TestARunAsAUserWithFewRights(t *testing.T) {
	server := redistest.Start(t)
	for _, strategy := range []string{"pubsub", "spin", "setnx"} {
		report, err := lockbench.Run(t.Context(), plan(t, service(t, server, strategy), strategy, briefly))
		if err != nil {
			t.Fatalf("%s: %v", strategy, err)
		}
		run := report.Runs[0]
		if !run.Valid() || run.Speed.Acquisitions == 0 || run.Safety.Overlaps > 0 {
			t.Errorf("%s: invalid %q, %d acquisitions", strategy, run.Invalid, run.Speed.Acquisitions)
		}
		if report.Floors.PingP50 == nil || (report.Floors.EvalP50 == nil) != (strategy != "spin") {
			t.Errorf("%s: floors %+v", strategy, report.Floors)
		}
	}
}

// What is missing is named for every strategy before the first run, and nothing is left.
func TestMissingRightsAreNamedBeforehand(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		without []string
		named   string
	}{
		{[]string{"resetchannels"}, "pubsub needs the right &redisson_lock__channel:*lockbench:*"},
		{[]string{"resetkeys"}, "pubsub needs the right ~lockbench:*"},
		{[]string{"-publish"}, "pubsub needs the right +publish"},
		{[]string{"-subscribe"}, "pubsub needs the right +subscribe"},
		{[]string{"-evalsha"}, "pubsub needs the right +evalsha"},
		{[]string{"-pttl"}, "pubsub needs the right +pttl"},
	} {
		address := service(t, server, "pubsub", test.without...)
		report, err := lockbench.Run(t.Context(), plan(t, address, "pubsub,local,setnx", briefly))
		if report != nil || !errors.Is(err, lockbench.ErrConfig) {
			t.Fatalf("without %v: %v", test.without, err)
		}
		if !strings.Contains(err.Error(), test.named) || !strings.Contains(err.Error(), "\nsetnx needs the right") {
			t.Errorf("without %v: %v", test.without, err)
		}
	}
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left %v", keys)
	}
}
