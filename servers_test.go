package lockbench_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// calls are the commands of a name that a Redis has carried out.
func calls(t *testing.T, server *redistest.Server, command string) bool {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	return strings.Contains(client.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":")
}

// Every strategy runs on each of several servers in every round, under the server's name,
// and on no other.
func TestSeveralServersAreCompared(t *testing.T) {
	t.Parallel()
	one, two := redistest.Start(t), redistest.Start(t)
	p := plan(t, one.URL(), "spin,pubsub", func(p *lockbench.Plan) {
		p.Rounds, p.Servers = 2, []lockbench.StoreOptions{{Address: two.URL()}}
	})
	report, err := lockbench.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	labels := []string{results.ServerLabel + one.Addr, results.ServerLabel + two.Addr}
	if report.Redis.Label != labels[0] || len(report.Stores) != 1 || report.Stores[0].Server.Label != labels[1] || report.Stores[0].Name != "redis" {
		t.Errorf("the servers are described as %+v and %+v", report.Redis, report.Stores)
	}
	seen := map[string]int{}
	for _, run := range report.Runs {
		seen[run.Strategy+" "+run.Point]++
		if !sound(run) || run.Speed.Acquisitions == 0 || run.Server.Whole == nil || run.Server.Whole.Calls == nil {
			t.Errorf("%s %s: %v", run.Strategy, run.Point, run.Invalid)
		}
	}
	for _, v := range p.Strategies {
		for _, label := range labels {
			if seen[v.Name()+" "+label] != 2 {
				t.Errorf("%s ran %d times under %s, of %v", v.Name(), seen[v.Name()+" "+label], label, seen)
			}
		}
	}
	if !calls(t, one, "publish") || !calls(t, two, "publish") {
		t.Error("a server was not locked on")
	}
	if missing := report.Missing(); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
}

// What only Redis has, or what is one server, is not compared on several.
func TestWhatCannotBeComparedOnSeveralServers(t *testing.T) {
	t.Parallel()
	p := plan(t, "process", "spin,local", nil)
	p.Servers = []lockbench.StoreOptions{{Address: "process"}, {Address: "redis://me:secret@nowhere:1"}}
	p.Session = "together"
	err := p.Validate()
	for _, want := range []string{"local does not lock in Redis", "--session: generators meet on one server"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	titles := strings.Join(p.Titles(), "\n")
	for _, want := range []string{"spin server=process", "spin server=process#2", "spin server=nowhere:1"} {
		if !slices.Contains(p.Titles(), want) {
			t.Errorf("there is no %q in %q", want, p.Titles())
		}
	}
	if strings.Contains(titles, "secret") {
		t.Errorf("a password is shown: %q", titles)
	}
}

// A counter that is kept apart tells what was lost when the locks' server forgets; one that
// is kept with them is forgotten too, and tells nothing.
func TestACounterApartOutlivesTheLocks(t *testing.T) {
	t.Parallel()
	fault, err := workloads.ParseFault("kill:at=300ms,for=10ms,data=lose")
	if err != nil {
		t.Fatal(err)
	}
	for place, tells := range map[workloads.CounterPlace]bool{workloads.CounterApart: true, workloads.CounterWithLocks: false} {
		p := plan(t, "process", "spin", func(p *lockbench.Plan) {
			p.Workload.Iterations, p.Workload.Duration = 0, workloads.Duration(6*time.Second)
			// Nobody lets go before the end, however long the restart takes.
			p.Workload.Work, p.Workload.Counter, p.Workload.Hold = workloads.WorkCounter, place, workloads.Fixed(time.Minute)
			p.Workload.Faults = []workloads.Fault{fault}
		})
		report, err := lockbench.Run(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		safety := report.Runs[0].Safety
		if lost := safety.LostUpdates; (lost != nil) != tells || tells && (*lost == 0 || safety.Overlaps == 0) {
			t.Errorf("%q: lost updates are %v, overlaps %d", place, lost, safety.Overlaps)
		}
		if len(safety.Leftovers) > 0 {
			t.Errorf("%q: left %v", place, safety.Leftovers)
		}
	}
}
