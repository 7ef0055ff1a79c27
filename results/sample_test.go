package results

import (
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// sample is a report as a run of three strategies on a small machine gives it.
func sample() *Report {
	started := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	w := workloads.Default()
	w.Clients, w.Hold, w.Seed = 500, workloads.Fixed(time.Millisecond), 1
	return &Report{
		Schema:   Schema,
		Tool:     Tool{Name: "lockbench", Version: "v0.1.0"},
		Started:  started,
		Finished: started.Add(22 * time.Second),
		Environment: Environment{
			OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPUModel: "Intel Xeon E5-2680", CPUs: 2, GoMaxProcs: 2,
			Go: "go1.26.0", TimerOvershoot: 1_064_000, ClockResolution: 41,
		},
		Redis: Redis{
			Source: "container", Address: "127.0.0.1:6390", Version: "8.0.3", Mode: "standalone",
			Network: "host", Image: "redis:8",
		},
		Workload: w,
		Rounds:   1,
		Strategies: []Strategy{
			{Name: "spin", Summary: "SET NX PX in a loop", Claims: []string{"exclusion", "recovery"}, Capacity: 1, Instances: 10},
			{Name: "pubsub", Summary: "wake-up by message", Claims: []string{"exclusion", "recovery"}, Capacity: 1, Instances: 10},
			{Name: "redsync", Summary: "a peer", Claims: []string{"exclusion"}, Capacity: 1, Instances: 10, BlackBox: true},
		},
		Floors: &Floors{
			NoopPerSecond: 2_104_000, LocalPerSecond: 1_020_000,
			PingP50: new(int64(48_100)), PingP99: new(int64(91_000)), EvalP50: new(int64(55_200)), EvalP99: new(int64(120_000)),
		},
		// In the shuffled order in which they ran.
		Runs: []Run{
			sampleRun("redsync", 1, 212, 1.4),
			sampleRun("pubsub", 1, 806, 1),
			sampleRun("spin", 1, 411.6, 1.2),
		},
	}
}

// sampleRun is a run at that rate, its durations longer by a factor.
func sampleRun(strategy string, round int, rate, factor float64) Run {
	ns := func(base float64) *Bound { return &Bound{NS: int64(base * factor)} }
	acquisitions := int64(rate * 5)
	run := Run{
		Strategy: strategy, Round: round, Order: 1, Seed: 1, WindowNS: 5e9,
		Speed: Speed{
			Acquisitions: acquisitions, PerSecond: rate, Utilisation: 0.82 / factor,
			Gap:     new(5*1e9/float64(acquisitions) - 1.02e6),
			Hold:    Distribution{Count: acquisitions, MeanNS: new(1.02e6), P50: ns(1.01e6), P99: ns(1.4e6)},
			Handoff: Distribution{Count: acquisitions, P50: ns(241_300), P99: ns(1_204_000)},
			Release: Distribution{Count: acquisitions, P50: ns(98_000)},
		},
		Waiting: Waiting{
			PerAcquisition: Distribution{Count: acquisitions, Censored: 499, P50: ns(4.1e8), P99: ns(1.31e9), Max: ns(2.02e9)},
			PerClient:      Distribution{Count: acquisitions, Censored: 499, P50: ns(5.2e8), P99: ns(1.9e9)},
			Open:           499,
		},
		Fairness: Fairness{TurnsMin: 3, TurnsMax: 14, Starved: new(0), Jain: new(0.981), LongestWait: ns(2.02e9), WorkingSet: new(308.4), Return: new(int64(412)), Overtakes: new(63.2 / factor), LargestBypass: int64(820 * factor)},
		Effort:   Effort{Attempts: new(2.3 * factor), WakeUps: new(1.2 * factor), Futile: new(0.2 * factor)},
		Server: Server{
			Window: &ServerDelta{
				Seconds: 5, Acquisitions: acquisitions,
				Calls: new(acquisitions * 7), RoundTrips: new(acquisitions * 3),
				BytesIn: new(acquisitions * 512), BytesOut: new(acquisitions * 1210),
				CPU: new(1.21), IdleCPU: new(0.05), MainCPU: new(1.1),
			},
			Whole: &ServerDelta{Foreign: new(0.0)},
			Peak:  &ServerPeak{Clients: new(int64(512)), Subscriptions: new(int64(10)), MemoryBytes: new(int64(8_310_000))},
		},
		Safety: Safety{LeftoverCount: new(int64(0))},
		Books:  Books{Balanced: true},
	}
	if strategy == "redsync" {
		run.Effort = Effort{}
		run.Server.Peak.Subscriptions = new(int64(0))
	}
	return run
}
