package lockbench_test

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// service creates a Redis user with the rights that a strategy needs, and returns the server's address for that user.
// The parameter without lists further ACL rules for the user, such as -get.
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
	p.Baselines = true
	p.Workload.Warmup, p.Workload.Duration = 0, workloads.Duration(200*time.Millisecond)
	p.Workload.Clients, p.Workload.Hold = 4, workloads.Fixed(10*time.Millisecond)
}

// A user with exactly the rights that lockbench list prints for a strategy must be able to run it.
func TestListedRightsAreSufficient(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, strategy := range []string{"pubsub", "spin", "setnx"} {
		report, err := lockbench.Run(t.Context(), plan(t, service(t, server, strategy), strategy, briefly))
		if err != nil {
			t.Fatalf("%s: %v", strategy, err)
		}
		run := report.Runs[0]
		// Do not require valid figures: on a busy machine the server's counters may be read too late for such a short window.
		if run.Failure != "" || run.Speed.Acquisitions == 0 || run.Safety.Overlaps > 0 {
			t.Errorf("%s: %q, %d acquisitions", strategy, run.Failure, run.Speed.Acquisitions)
		}
		if report.Baselines.PingP50 == nil || (report.Baselines.EvalP50 == nil) != (strategy != "spin") {
			t.Errorf("%s: floors %+v", strategy, report.Baselines)
		}
	}
}

// The user has the rights of pubsub except one. Run must report the missing rights of pubsub and of setnx before the
// first run, and must leave no key.
func TestMissingRightsAreReportedBeforeRuns(t *testing.T) {
	t.Parallel()
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

// A user with exactly the rights that lockbench declares for itself must get every figure without a refused command.
// Without any one of these rights, the server must refuse a command of lockbench.
func TestMeasurementRights(t *testing.T) {
	t.Parallel()
	refused := func(change func(*lockbench.Plan), without ...string) (report *results.Report, entries int, err error) {
		server := redistest.Start(t)
		admin := server.Client(t)
		address := service(t, server, "setnx", append(servers.MeasuringRights(), without...)...)
		ofRun, left := regexp.MustCompile("name=lockbench:("+store.IDPattern+"):run1"), ""
		planting := func(p *lockbench.Plan) {
			change(p)
			p.Progress = func(now lockbench.Progress) {
				id := ofRun.FindStringSubmatch(admin.ClientList(t.Context()).Val())
				if id != nil && left == "" && now.Phase == "measure" {
					left = "lockbench:{" + id[1] + ":1:9}" // a leftover of this run, which must be removed
					if err := admin.Set(t.Context(), left, "", 0).Err(); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if report, err = lockbench.Run(t.Context(), plan(t, address, "setnx", planting)); err != nil {
			return nil, 0, err
		}
		if n := admin.Exists(t.Context(), left).Val(); (n > 0 || left == "") && len(without) == 0 {
			t.Errorf("%q is left", left)
		}
		log, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
		return report, len(log), err
	}
	report, entries, err := refused(func(p *lockbench.Plan) {
		briefly(p)
		p.Workload.Iterations, p.Workload.Duration = 0, workloads.Duration(2*time.Second) // long enough for readings
	})
	if err != nil {
		t.Fatal(err)
	}
	run := report.Runs[0]
	if run.Server.Window == nil || run.Server.Peak == nil || report.Baselines == nil {
		t.Fatalf("no readings: window %v, peak %v, floors %v, %v, %q", run.Server.Window, run.Server.Peak,
			report.Baselines, run.Invalid, run.Failure)
	}
	if entries > 0 || run.Server.Window.CPU == nil || run.Server.Window.Calls == nil ||
		run.Server.Peak.Subscriptions == nil ||
		run.Safety.LeftoverCount == nil || report.Baselines.EvalP50 == nil || len(run.Errors) > 0 {
		t.Errorf("%d commands refused; server %+v, floors %+v, errors %v", entries, run.Server.Window, report.Baselines,
			run.Errors)
	}
	var all sync.WaitGroup
	for _, right := range servers.MeasuringRights() {
		if right == "+config|get" || right == "+get" || right == "+del" {
			// Skip CONFIG GET, which lockbench uses only before Redis 7, because INFO lacks maxclients there. Skip GET and DEL,
			// because setnx itself uses them.
			continue
		}
		all.Go(func() {
			_, entries, err := refused(func(p *lockbench.Plan) {
				briefly(p)
				p.Baselines = right == "+script|load" || right == "+evalsha" // only where needed, because they keep a core busy
			}, "-"+right[1:])
			if entries == 0 || err != nil {
				t.Errorf("without %s nothing is refused: %v", right, err)
			}
		})
	}
	all.Wait()
}
