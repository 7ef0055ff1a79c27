package html

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// synthetic is a report of these strategies at these numbers of clients, each
// strategy slower, dearer and less fair than the one before it.
func synthetic(names []string, clients []int, rounds int) *results.Report {
	started := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	r := &results.Report{
		Schema: results.Schema, Tool: results.Tool{Name: "lockbench", Version: "v0.1.0", Commit: "0123456789abcdef"},
		Started: started, Finished: started.Add(time.Minute), Rounds: rounds,
		Environment: results.Environment{OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPUModel: "Intel Xeon E5-2680", CPUs: 8, GoMaxProcs: 8, Go: "go1.26.0"},
		Redis:       results.Redis{Source: "container", Address: "127.0.0.1:6390", Version: "8.0.3", Mode: "standalone", Network: "host", Image: "redis:8", Topology: "single"},
	}
	for _, n := range clients {
		w := workloads.Default()
		w.Clients, w.Instances, w.Hold = n, min(10, n), workloads.Fixed(time.Millisecond)
		r.Points = append(r.Points, workloads.Point{Label: fmt.Sprintf("clients=%d", n), Workload: w})
	}
	r.Workload = r.Points[0].Workload
	for _, name := range names {
		r.Strategies = append(r.Strategies, results.Strategy{Name: name, Summary: "a lock", Claims: []string{"exclusion"}, Capacity: 1, Instances: 10})
	}
	for round := range rounds {
		for i, name := range names {
			for _, p := range r.Points {
				run := syntheticRun(i, p.Workload, rand.New(rand.NewPCG(uint64(round), uint64(i)))) //nolint:gosec // figures, no secrets
				run.Strategy, run.Point, run.Round, run.Started = name, p.Label, round+1, started
				r.Runs = append(r.Runs, run)
			}
		}
	}
	if len(clients) == 1 {
		r.Points = nil
		for i := range r.Runs {
			r.Runs[i].Point = ""
		}
	}
	return r
}

// syntheticRun is one of the strategy number i.
func syntheticRun(i int, w workloads.Spec, random *rand.Rand) results.Run {
	rank, clients := float64(i+1), float64(w.Clients)
	rate := 900 / (1 + 0.1*rank) * (1 + 0.02*random.NormFloat64())
	const seconds = 5
	acquisitions := int64(rate * seconds)
	run := results.Run{WindowNS: seconds * 1e9, Seed: 1, TimeAccounting: results.TimeAccounting{Balanced: true}}
	run.Speed = results.Speed{
		Acquisitions: acquisitions, Served: acquisitions, PerSecond: rate, ServedPerSecond: rate, Utilisation: min(1, rate/1000),
		Handoff: lognormal(acquisitions, 0, 1e5*rank, 0.5),
	}
	wait := clients / rate * 1e9
	open := int64(clients) - 1
	waits := lognormal(acquisitions, open, clients*1e6*(1+0.1*rank), 0.2*rank)
	run.Waiting = results.Waiting{PerAcquisition: waits, PerClient: waits, Open: open}
	turns := results.NewPerClientHistogram()
	run.Fairness.AcquisitionsMin, run.Fairness.Starved = math.MaxInt64, new(0)
	for range w.Clients {
		n := int64(float64(acquisitions) / clients * math.Exp(0.1*rank*random.NormFloat64()))
		if err := turns.RecordValue(n); err != nil {
			panic(err)
		}
		run.Fairness.AcquisitionsMin, run.Fairness.AcquisitionsMax = min(run.Fairness.AcquisitionsMin, n), max(run.Fairness.AcquisitionsMax, n)
		if n == 0 {
			*run.Fairness.Starved++
		}
	}
	run.Fairness.SetPerClient(turns)
	run.Server.Window = &results.ServerDelta{
		Seconds: seconds, Acquisitions: acquisitions,
		Calls: new(int64(float64(acquisitions) * (4 + rank*clients/50))), RoundTrips: new(acquisitions * 3), CPU: new(0.1 * rank * seconds),
	}
	run.Safety.LeftoverCount = new(int64(0))
	for second := range seconds {
		run.Timeline = append(run.Timeline, results.Slice{
			At: float64(second), Seconds: 1, Acquisitions: int64(rate * (1 + 0.05*random.NormFloat64())), Waiting: w.Clients - 1,
			WaitP50: new(int64(wait)), WaitP99: new(int64(wait * (2 + random.Float64()))), WaitMax: new(int64(wait * 4)),
		})
	}
	return run
}

// lognormal are durations about a median, some of which had not ended. A few
// hundred make the curves of as many as there would be.
func lognormal(n, open int64, median, sigma float64) results.Distribution {
	key := fmt.Sprint(open > 0, median, sigma)
	drawn.Lock()
	defer drawn.Unlock()
	if d, before := drawn.distributions[key]; before {
		return d
	}
	random := rand.New(rand.NewPCG(1, uint64(sigma*1000))) //nolint:gosec // figures, no secrets
	n, open = min(n, 500), min(open, 100)
	ended, censored := results.NewHistogram(), results.NewHistogram()
	var longest results.Bound
	for i := range n + open {
		ns := int64(min(median*math.Exp(sigma*random.NormFloat64()), 6e9))
		h := ended
		if i >= n {
			h = censored
		}
		if err := h.RecordValue(ns); err != nil {
			panic(err)
		}
		if ns > longest.NS {
			longest = results.Bound{NS: ns, AtLeast: i >= n}
		}
	}
	d := results.Describe(results.Observations{Ended: ended, Censored: censored}, &longest)
	drawn.distributions[key] = d
	return d
}

// drawn are those that have been drawn: histograms are slow under the race
// detector.
var drawn = struct {
	sync.Mutex
	distributions map[string]results.Distribution
}{distributions: map[string]results.Distribution{}}

// ten are strategies with names as long as variants have.
func ten() []string {
	return []string{
		"handoff", "blpop", "fair", "pubsub", "spin", "redsync", "redlock", "blpop:channel=none",
		"spin:backoff=exponential,base=5ms,cap=200ms", "gated:pubsub:channel=broadcast",
	}
}
