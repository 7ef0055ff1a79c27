package sample

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/results"
)

// Recorded returns the sample in three rounds with histograms. The caller may change its
// Strategies and Runs, but not what pointers in them lead to.
func Recorded() *results.Report {
	r := *recording()
	r.Strategies, r.Runs = slices.Clone(r.Strategies), slices.Clone(r.Runs)
	return &r
}

var recording = sync.OnceValue(func() *results.Report {
	r := Cases()["rounds"]
	r.Runs[4].Invalid = nil
	for i := range r.Runs {
		run := &r.Runs[i]
		factor := 1 + float64(i)/10
		run.Started = r.Started.Add(1e9)
		run.Speed.Handoff = scattered(run.Speed.Acquisitions, 0, 240_000*factor)
		run.Speed.Hold = scattered(run.Speed.Acquisitions, 0, 1_060_000*factor)
		run.Speed.Release = scattered(run.Speed.Acquisitions, 0, 98_000*factor)
		run.Waiting.PerAcquisition = scattered(run.Speed.Acquisitions, 499, 4e8*factor)
		run.Waiting.Service = scattered(run.Speed.Acquisitions, 0, 4e8*factor)
		turns := results.NewPerClientHistogram()
		for client := range r.Workload.Clients {
			if err := turns.RecordValue(int64(3 + client%12)); err != nil {
				panic(err)
			}
		}
		run.Fairness.SetPerClient(turns)
	}
	return r
})

// scattered returns a log-uniform distribution around a median, over a factor of 16, and open waits
// of up to ten times the median.
func scattered(n, open int64, median float64) results.Distribution {
	ended, censored := results.NewHistogram(), results.NewHistogram()
	record := func(h interface{ RecordValue(int64) error }, ns float64) int64 {
		if err := h.RecordValue(int64(ns)); err != nil {
			panic(fmt.Sprint(ns, err))
		}
		return int64(ns)
	}
	var longest, sum int64
	for i := range n {
		ns := record(ended, median*math.Pow(16, float64(i)/float64(n)-0.5))
		longest, sum = max(longest, ns), sum+ns
	}
	most := results.Bound{NS: longest}
	for i := range open {
		if ns := record(censored, 10*median*float64(i+1)/float64(open)); ns > most.NS {
			most = results.Bound{NS: ns, AtLeast: true}
		}
	}
	d := results.Describe(results.Observations{Ended: ended, Censored: censored}, &most)
	if n > 0 {
		d.MeanNS = new(float64(sum) / float64(n))
	}
	return d
}
