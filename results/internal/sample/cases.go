package sample

import (
	"strconv"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Cases returns reports whose tables are stored as golden files.
func Cases() map[string]*results.Report {
	rounds := Report()
	rounds.Rounds = 3
	rounds.Runs = nil
	for round, factor := range []float64{1, 1.1, 0.9} {
		rounds.Runs = append(rounds.Runs,
			Run("spin", round+1, 411*factor, 1.2*factor),
			Run("pubsub", round+1, 806*factor, factor),
			Run("redsync", round+1, 212*factor, 1.4*factor))
	}
	rounds.Runs[4].Invalid = []string{"its time accounts do not balance: a client's phases differ from the window by 0.31 %"}

	sweep := Report()
	for _, keys := range []int{1, 8} {
		point := workloads.Point{Label: "keys=" + strconv.Itoa(keys), Workload: sweep.Workload}
		point.Workload.Keys = keys
		sweep.Points = append(sweep.Points, point)
	}
	sweep.Rounds, sweep.Runs, sweep.Strategies = 2, nil, sweep.Strategies[:2]
	for round := range 2 {
		for i, point := range sweep.Points {
			for _, name := range []string{"pubsub", "spin"} {
				run := Run(name, round+1, 400*float64(i+1+len(name)+round), 1)
				run.Point = point.Label
				sweep.Runs = append(sweep.Runs, run)
			}
		}
	}

	censored := Report()
	waits := &censored.Runs[2].Waiting
	for _, b := range []*results.Bound{waits.PerAcquisition.P99, waits.PerAcquisition.Max, waits.PerClient.P50, waits.PerClient.P99} {
		b.AtLeast = true
	}
	censored.Runs[2].Fairness = results.Fairness{AcquisitionsMax: 210, Starved: new(342), LongestWait: &results.Bound{NS: 6.01e9, AtLeast: true}}
	censored.Runs[2].Labels = []string{"generator-bound"}
	censored.Runs[0].Labels = []string{"generator-bound", "other clients' traffic 3.1%"}

	nils := Report()
	nils.Baselines.PingP50, nils.Baselines.PingP99, nils.Baselines.EvalP50, nils.Baselines.EvalP99 = nil, nil, nil, nil
	nils.Runs = []results.Run{{Strategy: "spin", Round: 1}, Run("pubsub", 1, 806, 1)}
	nils.Runs[1].Server = results.Server{Window: &results.ServerDelta{Seconds: 5}, Peak: &results.ServerPeak{}}

	invalid := Report()
	invalid.Runs[1].Invalid = []string{"12 commands timed out waiting for a connection (see --pool)", "3 clients did not come back when told to stop"}
	invalid.Runs[1].Errors = []results.ErrorCount{{Error: "redis: connection pool timeout", Count: 12}, {Error: "context deadline exceeded", Count: 1}}

	broken := Report()
	broken.Strategies = append(broken.Strategies,
		results.Strategy{Name: "noop", Capacity: 1, Instances: 10},
		results.Strategy{Name: "setnx:retry=5ms", Claims: []string{"exclusion"}, Caveat: "SETNX without a TTL: a crashed holder blocks the lock for ever", Capacity: 1})
	broken.Runs = append(broken.Runs, Run("noop", 1, 1.9e6, 0.001), Run("setnx:retry=5ms", 1, 300, 1))
	broken.Runs[2].Safety = results.Safety{
		Overlaps: 3, OverlapNS: 1e6, ExpiredOverlaps: 1, MaxHolders: 2, FencedLeases: 2000, FencingRegression: 2, LostLeases: 4,
		Leftovers: []string{"key lockbench:{1}:a", "key lockbench:{1}:b", "channel c", "channel d"}, LeftoverCount: new(int64(25)),
		Broken: []string{"exclusion: 3 overlaps within valid leases", "fencing: 2 tokens not larger than an earlier one"},
	}
	broken.Runs[3].Safety = results.Safety{Overlaps: 1_900_000, MaxHolders: 500}

	work := Report()
	work.Workload.Work, work.Workload.Coalesce = workloads.WorkCounter, true
	for i := range work.Runs {
		work.Runs[i].Speed.ServedPerSecond = 4 * work.Runs[i].Speed.PerSecond
	}
	work.Runs[2].Safety.LostUpdates = new(int64(17))
	work.Runs[2].Safety.ExpiredOverlaps, work.Runs[1].Safety.ExpiredOverlaps, work.Runs[1].Safety.FencedLeases = 5, 3, 900

	faults := Faulty()

	interrupted := Report()
	interrupted.Interrupted = true
	interrupted.Runs = interrupted.Runs[:2]
	interrupted.Runs[1].Partial, interrupted.Runs[1].Labels = true, []string{"partial: 1.204s"}
	interrupted.Warnings = []string{"--hold 40s is longer than --ttl 30s: leases run out while they are held, so locks without a watchdog will overlap"}
	interrupted.LeftOut = []results.LeftOut{{Strategy: "redlock", Why: "it needs 3 independent Redis nodes, there is 1"}}

	judged := Report()
	for _, expression := range []string{"acq_per_s>400", "wake_ups_per_acq{strategy:redsync}<2", "violations==0"} {
		threshold, err := results.ParseThreshold(expression)
		if err != nil {
			panic(err)
		}
		judged.Thresholds = append(judged.Thresholds, results.Judge(judged, []results.Threshold{threshold})...)
	}

	empty := Report()
	empty.Runs, empty.Baselines = nil, nil
	empty.Error, empty.Unreachable = "Redis unreachable: dial tcp 127.0.0.1:6390: connect: connection refused", true

	return map[string]*results.Report{
		"normal": Report(), "rounds": rounds, "sweep": sweep, "censored": censored, "nils": nils, "invalid": invalid,
		"broken": broken, "work": work, "faults": faults, "interrupted": interrupted, "empty": empty, "thresholds": judged,
	}
}
