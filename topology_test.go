package lockbench_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// init registers on-five, a copy of spin that declares that it needs five nodes.
func init() {
	spin, err := strategies.NewVariant("spin", nil)
	if err != nil {
		panic(err)
	}
	strategies.Register(strategies.Info{
		Name: "on-five", Summary: "needs five nodes", Capacity: 1, Nodes: 5, Claims: strategies.Claims{Exclusion: true},
	}, struct{}{}, func(config goredis.Config, _ struct{}) (strategies.Locker, error) {
		return goredis.Open(spin, config)
	})
}

// On each topology, Run must measure the strategies that fit the topology, and give a reason for each strategy that it
// leaves out.
func TestTopologies(t *testing.T) {
	for topology, want := range map[string]struct {
		left  string
		nodes int
	}{
		"single":    {"on-five", 0},
		"nodes:5":   {"", 5},
		"cluster:3": {"blpop on-five", 3},
	} {
		t.Run(topology, func(t *testing.T) {
			report := runOn(t, topology)
			var left []string
			for _, l := range report.LeftOut {
				left = append(left, l.Strategy)
				if l.Why.Text == "" {
					t.Errorf("no reason is given for leaving out %s", l.Strategy)
				}
			}
			slices.Sort(left)
			if got := strings.Join(left, " "); got != want.left {
				t.Errorf("left out: %q, want %q", got, want.left)
			}
			if len(report.Runs)+len(left) != 3 {
				t.Errorf("%d runs", len(report.Runs))
			}
			if report.Redis.Topology != topology || len(report.Redis.Nodes) != want.nodes {
				t.Errorf("Redis is %+v", report.Redis)
			}
			for _, run := range report.Runs {
				// Check the counts of the whole run, because on a busy machine the server's counters may be read too late for the
				// short window.
				if whole := run.Server.Whole; whole == nil || whole.Acquisitions == 0 ||
					len(whole.Nodes) != want.nodes {
					t.Errorf("%s: server counts %+v", run.Strategy, whole)
				}
				if len(run.Safety.Broken) > 0 || len(run.Safety.Leftovers) > 0 {
					t.Errorf("%s: %+v", run.Strategy, run.Safety)
				}
			}
			if foreign := report.Server.OtherTraffic; foreign == nil || *foreign > 1 {
				t.Errorf("other clients' traffic: %v", foreign)
			}
		})
	}
}

func runOn(t *testing.T, topology string) *results.Report {
	t.Helper()
	report, err := lockbench.Run(t.Context(), plan(t, "process", "spin,blpop,on-five", func(p *lockbench.Plan) {
		p.Redis.Topology, p.Workload.Keys = topology, 4
	}))
	if err != nil {
		t.Fatal(err)
	}
	return report
}
