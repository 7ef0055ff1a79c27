package render

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// stores is a report of Redis and of another store.
func stores() *results.Report {
	return &results.Report{
		Redis: results.Redis{Name: "valkey", Version: "9.1.2"}, Rounds: 1, Workload: workloads.Default(),
		Stores:     []results.Store{{Name: "etcd", Server: results.Redis{Name: "etcd", Version: "3.4.23"}}},
		Strategies: []results.Strategy{{Name: "spin"}, {Name: "etcd:watch=next", Store: "etcd"}},
		Runs: []results.Run{
			{Strategy: "spin"}, {Strategy: "etcd:watch=next"},
		},
	}
}

// Each run is said to be on the server that it was on, and no two share a name.
func TestRunsAreOnTheirServers(t *testing.T) {
	r := stores()
	for i, want := range []string{"valkey 9.1.2", "etcd 3.4.23"} {
		if got := r.ServerOf(r.Runs[i]).Release(); got != want {
			t.Errorf("%s %s was on %q, want %q", r.Runs[i].Strategy, r.Runs[i].Point, got, want)
		}
	}
	seen := map[string]bool{}
	for _, run := range r.Runs {
		name := benchName(run.Strategy, r.WorkloadOf(run))
		if seen[name] {
			t.Errorf("several runs are called %s", name)
		}
		seen[name] = true
	}
	var csv, bench strings.Builder
	if err := WriteCSV(&csv, r); err != nil {
		t.Fatal(err)
	}
	if err := WriteBenchfmt(&bench, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{",valkey 9.1.2,", ",etcd 3.4.23,"} {
		if strings.Count(csv.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, csv.String())
		}
	}
	if strings.Contains(bench.String(), "redis: ") {
		t.Error("every run is said to be on one Redis")
	}
}
