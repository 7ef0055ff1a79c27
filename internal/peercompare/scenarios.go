package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads/spec"
)

// peers are other people's locks, at their documented defaults and tuned.
var peers = [...]string{
	"redislock", "redislock:tuned=true",
	"redsync", "redsync:tuned=true",
	"rueidislock", "rueidislock:tuned=true",
}

// swept are the peers of the sweeps, whose tables need no more than the best of each
// library: the other variants come near them in the main tables, or are behind.
var swept = [...]string{"redislock", "redislock:tuned=true", "redsync", "rueidislock"}

// ours are this module's own locks; without lingering handoff gives each waiter a place
// of its own in the queue, in strict order.
var ours = [...]string{"handoff", unlingering, "cohort"}

const unlingering = "handoff:linger=0s"

// gated is a peer behind a mutex in each process.
func gated(peer string) string { return "gated:" + peer }

func behindGates(peers []string) []string {
	var all []string
	for _, peer := range peers {
		all = append(all, gated(peer))
	}
	return all
}

// scenario is one workload and who goes through it.
type scenario struct {
	name       string // of its files, and as targets call it
	title      string // of its section; "" for one that only targets read
	clients    int
	instances  int
	hold       time.Duration
	think      string // as --think
	rounds     int
	strategies []string
}

// instanceSweep is how many processes the clients are spread over.
var instanceSweep = [...]int{1, 10, 50, 500}

// names are those of all scenarios.
func names() []string {
	all, _ := every(settings{clients: 500})
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

// scenarios are those asked for.
func scenarios(set settings) ([]scenario, error) {
	all, err := every(set)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s scenario) bool { return len(s.strategies) == 0 })
	if set.scenarios == "" {
		return all, nil
	}
	wanted := strings.Split(set.scenarios, ",")
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("-scenarios: there is no %q (there are: %s)", name, strings.Join(names(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !slices.Contains(wanted, s.name) }), nil
}

func every(set settings) ([]scenario, error) {
	own := registered(set.ours)
	crowd := slices.Concat(own, peers[:], behindGates(peers[:]))
	few := slices.Concat(own, swept[:], behindGates(swept[:]))
	at := func(name, title string, rounds int) scenario {
		return scenario{name: name, title: title, clients: set.clients, instances: 10, rounds: rounds, strategies: crowd}
	}
	var all []scenario
	add := func(s scenario) { all = append(all, s) }

	add(at("hold0", "Hold 0", set.rounds))
	held := at("hold1ms", "Hold 1 ms", set.rounds)
	held.hold = time.Millisecond
	add(held)

	for _, instances := range instanceSweep {
		if instances == held.instances {
			continue // that is hold1ms
		}
		s := held
		s.name, s.title = fmt.Sprintf("instances%d", instances), fmt.Sprintf("Hold 1 ms, %d instances", instances)
		s.instances, s.rounds, s.strategies = min(instances, s.clients), set.sweep, few
		add(s)
	}
	thinking := held
	thinking.name, thinking.title = "think", "Hold 1 ms, think time exp:1s"
	thinking.think, thinking.rounds, thinking.strategies = "exp:1s", set.sweep, few
	add(thinking)

	// Ours alone: one client an instance, and the cost of few and of many clients.
	alone := at("alone", "One client an instance, hold 0", set.rounds)
	alone.clients, alone.instances, alone.strategies = 50, 50, own
	fewer, many := alone, alone
	fewer.name, fewer.title, fewer.instances = "few", "50 clients, hold 0", 10
	many.name, many.title, many.clients, many.instances = "many", "5,000 clients, hold 0", 5000, 10
	all = append(all, alone, fewer, many)
	for _, s := range all {
		for _, name := range s.strategies {
			if _, err := strategies.ParseVariants(name); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// registered are those of a list that this program has.
func registered(list string) []string {
	var found []string
	for variant := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(variant, ":")
		if _, err := strategies.Lookup(name); err == nil {
			found = append(found, variant)
		}
	}
	return found
}

// workload is the scenario as lockbench runs it.
func (s scenario) workload(warmup, window time.Duration, seed int64) (spec.Spec, error) {
	w := spec.Default()
	w.Clients, w.Instances, w.Seed = s.clients, s.instances, seed
	w.Hold = spec.Fixed(s.hold)
	w.Warmup, w.Duration = spec.Duration(warmup), spec.Duration(window)
	if s.think != "" {
		if err := w.Think.UnmarshalText([]byte(s.think)); err != nil {
			return w, fmt.Errorf("think time: %w", err)
		}
	}
	return w, nil
}
