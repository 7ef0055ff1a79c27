package sample

import "github.com/lockbench/lockbench/results"

// Waited returns a report of one run with ended waits of endedMS each, and open waits of openMS
// each.
func Waited(ended, endedMS, open, openMS int64) *results.Report {
	h, censored := results.NewHistogram(), results.NewHistogram()
	longest := &results.Bound{NS: endedMS * 1e6}
	if err := h.RecordValues(endedMS*1e6, ended); err != nil {
		panic(err)
	}
	if open > 0 {
		if err := censored.RecordValues(openMS*1e6, open); err != nil {
			panic(err)
		}
		longest = results.Longest(longest, &results.Bound{NS: openMS * 1e6, AtLeast: true})
	}
	d := results.Describe(results.Observations{Ended: h, Censored: censored}, longest)
	d.MeanNS = new(float64(endedMS) * 1e6)
	run := results.Run{Strategy: "fifo", Round: 1, WindowNS: 1e9}
	run.Waiting.PerAcquisition = d
	return &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "fifo"}}, Runs: []results.Run{run}}
}
