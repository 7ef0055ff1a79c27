package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// deployment is a shape in which services run a lock. It is measured with two holds.
type deployment struct {
	name  string
	title string

	clients    int
	instances  int
	keys       int
	processes  int           // operating-system processes that share the clients; 0 is this one alone
	oneWay     time.Duration // latency added in each direction
	strategies []string
}

// deployments are all of them, with those who go through each by default: the best of
// each library, and what somebody without one would write.
func deployments() []deployment {
	calm := []string{"handoff", "spin", "redislock", "redsync", "rueidislock"} // where nobody waits, tuned and not are the same
	waiting := []string{"handoff", "spin", "redislock", "redislock:tuned=true", "redsync", "rueidislock"}
	most := waiting[:len(waiting)-1] // rueidislock, by far the slowest, would take its time of the others
	crowds := slices.Concat([]string{"handoff", "handoff:linger=0s", "cohort"}, waiting[1:], []string{"gated:redislock", "gated:redsync", "gated:rueidislock"})
	shared := []string{"handoff", "spin:pipeline=true", "redislock:pipeline=true", "redsync:pipeline=true"} // handoff has always one
	return []deployment{
		{name: "free", title: "Nobody waits: 50 clients, 10,000 keys", clients: 50, instances: 1, keys: 10_000, strategies: calm},
		{name: "shared", title: "Nobody waits, all callers share one pipeline", clients: 50, instances: 1, keys: 10_000, strategies: shared},
		{name: "one", title: "One client", clients: 1, instances: 1, keys: 1, strategies: calm},
		{name: "lone50", title: "50 instances of one client", clients: 50, instances: 50, keys: 1, strategies: waiting},
		{name: "lone500", title: "500 instances of one client", clients: 500, instances: 500, keys: 1, strategies: most},
		{name: "processes", title: "20 operating-system processes of one client", clients: 20, instances: 20, keys: 1, processes: 20, strategies: most},
		{name: "crowds", title: "10 instances of 50 clients", clients: 500, instances: 10, keys: 1, strategies: crowds},
		{name: "far", title: "20 instances of one client, 1 ms of latency added in each direction", clients: 20, instances: 20, keys: 1, oneWay: time.Millisecond, strategies: waiting},
	}
}

// holds are how long a lease is held, by the end of a scenario's name.
var holds = []struct {
	name, title string
	hold        time.Duration
}{{"hold0", "hold 0", 0}, {"hold1ms", "hold 1 ms", time.Millisecond}}

// scenario is a deployment with one hold.
type scenario struct {
	deployment
	name  string // of its files, and as targets call it
	title string // of its section
	hold  time.Duration
}

// everything is all scenarios, with the strategies of the list in place of their own
// unless it is empty.
func everything(list []string) []scenario {
	var all []scenario
	for _, d := range deployments() {
		if len(list) > 0 {
			d.strategies = list
		}
		for _, h := range holds {
			all = append(all, scenario{d, d.name + "-" + h.name, d.title + ", " + h.title, h.hold})
		}
	}
	return all
}

// names are those of all scenarios.
func names() []string {
	var names []string
	for _, s := range everything(nil) {
		names = append(names, s.name)
	}
	return names
}

// scenarios are those asked for: by their names, or by their deployments'.
func scenarios(set settings) ([]scenario, error) {
	list, err := listed(set.strategies)
	if err != nil {
		return nil, fmt.Errorf("-strategies: %w", err)
	}
	all := everything(list)
	if set.scenarios == "" {
		return all, nil
	}
	var chosen []scenario
	for wanted := range strings.SplitSeq(set.scenarios, ",") {
		of := slices.DeleteFunc(slices.Clone(all), func(s scenario) bool { return s.name != wanted && s.deployment.name != wanted })
		if len(of) == 0 {
			return nil, fmt.Errorf("-scenarios: there is no %q (there are: %s)", wanted, strings.Join(names(), ", "))
		}
		chosen = append(chosen, of...)
	}
	return chosen, nil
}

// listed are the names of the variants in a list, as lockbench takes it.
func listed(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	variants, err := strategies.ParseVariants(list)
	var names []string
	for _, v := range variants {
		names = append(names, v.Name())
	}
	return names, err
}

// available leaves out the strategies that this program does not have.
func available(list []string) (variants []strategies.Variant, missing []string) {
	for _, name := range list {
		variant, err := strategies.ParseVariants(name)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		variants = append(variants, variant...)
	}
	return variants, missing
}

// workload is the scenario as lockbench runs it, or as each of its processes does.
func (s scenario) workload(warmup, window time.Duration, seed int64) workloads.Spec {
	w := workloads.Default()
	each := max(s.processes, 1)
	w.Clients, w.Instances, w.Keys, w.Seed = s.clients/each, s.instances/each, s.keys, seed
	w.Hold = workloads.Fixed(s.hold)
	w.Warmup, w.Duration = workloads.Duration(warmup), workloads.Duration(window)
	return w
}
