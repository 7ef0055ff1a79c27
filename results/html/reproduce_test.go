package html

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

func TestReproduce(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*results.Report){
		"lockbench --strategy a,b --hold 1ms --no-baselines -o json=run.json": func(*results.Report) {},
		"lockbench --strategy a,b --hold 1ms --runs 6 --redis container --topology cluster:3 --image redis:8 " +
			"-o json=run.json": func(r *results.Report) {
			r.Rounds, r.Baselines = 6, &results.Baselines{}
			r.Redis = results.Redis{
				Source: "container", Address: "127.0.0.1:4242", Topology: "cluster:3",
				Image: "redis:8",
			}
		},
		"lockbench --strategy a,b --hold 1ms --redis rediss://one:1,rediss://two:2 -o " +
			"json=run.json": func(r *results.Report) {
			r.Baselines = &results.Baselines{}
			r.Redis = results.Redis{
				Source: "address", Address: "one:1", Nodes: []string{"one:1", "two:2"},
				Topology: "nodes:2", TLS: true,
			}
		},
		"lockbench --strategy a,b --hold 1ms --fault script-flush:at=1s --redis redis://one:1 " +
			"--allow-faults-on-my-server -o json=run.json": func(r *results.Report) {
			r.Baselines, r.Workload.Faults = &results.Baselines{},
				[]workloads.Fault{{Name: workloads.ScriptFlush, At: workloads.Duration(time.Second)}}
			r.Redis = results.Redis{Source: "address", Address: "one:1", Topology: "single"}
		},
		"lockbench --strategy a,b --hold 1ms --fault holder-crash:at=1s --redis redis://one:1 -o " +
			"json=run.json": func(r *results.Report) {
			r.Baselines, r.Workload.Faults = &results.Baselines{},
				[]workloads.Fault{{Name: workloads.HolderCrash, At: workloads.Duration(time.Second)}}
			r.Redis = results.Redis{Source: "address", Address: "one:1", Topology: "single"}
		},
	} {
		r := even(1)
		change(r)
		if got := reproduce(results.File{Report: r}); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
