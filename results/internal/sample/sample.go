// Package sample provides reports for tests.
package sample

import (
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Report returns a report of three strategies on a small machine.
func Report() *results.Report {
	started := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	w := workloads.Default()
	w.Clients, w.Hold, w.Seed = 500, workloads.Fixed(time.Millisecond), 1
	return &results.Report{
		Schema:   results.Schema,
		Tool:     results.Tool{Name: "lockbench", Version: "v0.1.0"},
		Started:  started,
		Finished: started.Add(22 * time.Second),
		Environment: results.Environment{
			OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPUModel: "Intel Xeon E5-2680", CPUs: 2, GoMaxProcs: 2,
			Go: "go1.26.0", TimerOvershoot: 1_064_000, ClockResolution: 41,
		},
		Redis: results.Redis{
			Source: "container", Address: "127.0.0.1:6390", Version: "8.0.3", Mode: "standalone",
			Network: "host", Image: "redis:8",
		},
		Workload: w,
		Rounds:   1,
		Strategies: []results.Strategy{
			{Name: "spin", Summary: "SET NX PX in a loop", Claims: []string{"exclusion", "recovery"}, Capacity: 1, Instances: 10},
			{Name: "pubsub", Summary: "wake-up by message", Claims: []string{"exclusion", "recovery"}, Capacity: 1, Instances: 10},
			{Name: "redsync", Summary: "a peer", Claims: []string{"exclusion"}, Capacity: 1, Instances: 10, BlackBox: true},
		},
		Baselines: &results.Baselines{
			NoopPerSecond: 2_104_000, LocalPerSecond: 1_020_000,
			PingP50: new(int64(48_100)), PingP99: new(int64(91_000)), EvalP50: new(int64(55_200)), EvalP99: new(int64(120_000)),
		},
		// The shuffled order in which they ran.
		Runs: []results.Run{
			Run("redsync", 1, 212, 1.4),
			Run("pubsub", 1, 806, 1),
			Run("spin", 1, 411.6, 1.2),
		},
	}
}

// Run returns a run with this rate; factor scales its durations.
func Run(strategy string, round int, rate, factor float64) results.Run {
	ns := func(base float64) *results.Bound { return &results.Bound{NS: int64(base * factor)} }
	acquisitions := int64(rate * 5)
	run := results.Run{
		Strategy: strategy, Round: round, Order: 1, Seed: 1, WindowNS: 5e9,
		Speed: results.Speed{
			Acquisitions: acquisitions, PerSecond: rate, Utilisation: 0.82 / factor,
			Gap:     new(5*1e9/float64(acquisitions) - 1.02e6),
			Hold:    results.Distribution{Count: acquisitions, MeanNS: new(1.02e6), P50: ns(1.01e6), P99: ns(1.4e6)},
			Handoff: results.Distribution{Count: acquisitions, P50: ns(241_300), P99: ns(1_204_000)},
			Release: results.Distribution{Count: acquisitions, P50: ns(98_000)},
		},
		Waiting: results.Waiting{
			PerAcquisition: results.Distribution{Count: acquisitions, Censored: 499, P50: ns(4.1e8), P99: ns(1.31e9), Max: ns(2.02e9)},
			PerClient:      results.Distribution{Count: acquisitions, Censored: 499, P50: ns(5.2e8), P99: ns(1.9e9)},
			Open:           499,
		},
		Fairness: results.Fairness{AcquisitionsMin: 3, AcquisitionsMax: 14, Starved: new(0), Jain: new(0.981), LongestWait: ns(2.02e9), WorkingSet: new(308.4), ReacquireDistance: new(int64(412)), Overtaken: new(63.2 / factor), LargestBypass: int64(820 * factor)},
		Effort:   results.Effort{Attempts: new(2.3 * factor), WakeUps: new(1.2 * factor), Futile: new(0.2 * factor)},
		Server: results.Server{
			Window: &results.ServerDelta{
				Seconds: 5, Acquisitions: acquisitions,
				Calls: new(acquisitions * 7), RoundTrips: new(acquisitions * 3),
				BytesIn: new(acquisitions * 512), BytesOut: new(acquisitions * 1210),
				CPU: new(1.21), IdleCPU: new(0.05), MainCPU: new(1.1),
			},
			Whole: &results.ServerDelta{OtherTraffic: new(0.0)},
			Peak:  &results.ServerPeak{Clients: new(int64(512)), Subscriptions: new(int64(10)), MemoryBytes: new(int64(8_310_000))},
		},
		Safety:         results.Safety{LeftoverCount: new(int64(0))},
		TimeAccounting: results.TimeAccounting{Balanced: true},
	}
	if strategy == "redsync" {
		run.Effort = results.Effort{}
		run.Server.Peak.Subscriptions = new(int64(0))
	}
	return run
}

// Faulty returns a report of runs with injected faults.
func Faulty() *results.Report {
	r := Report()
	for _, text := range []string{"holder-pause:at=1s,for=3s,every=4s", "holder-crash:at=2s"} {
		fault, err := workloads.ParseFault(text)
		if err != nil {
			panic(err)
		}
		r.Workload.Faults = append(r.Workload.Faults, fault)
	}
	r.Workload.TTL = workloads.Duration(time.Second)
	r.Workload.Work = workloads.WorkCounter
	for i := range r.Runs {
		r.Runs[i].Safety.LostUpdates = new(int64(4))
		r.Runs[i].Faults = []results.Fault{
			{Fault: r.Workload.Faults[0], Injections: []results.Injection{
				{
					AtNS: 1_003_000_000, LastedNS: 3_001_000_000, Key: "lockbench:{1:0}", RecoveryNS: new(int64(998_000_000)), Stall: &results.Bound{NS: 998_000_000},
					Late: 120, LateNS: 1_900_000_000,
				},
				{AtNS: 5_000_000_000, LastedNS: 3_001_000_000, Key: "lockbench:{1:0}", Stall: &results.Bound{NS: 2_000_000_000, AtLeast: true}, Overlaps: 1, OverlapNS: 10_000, LostWakeUps: 2},
			}},
			{Fault: r.Workload.Faults[1], Injections: []results.Injection{}, Missed: []string{"the window ended before it could come about: context canceled"}},
		}
	}
	return r
}
