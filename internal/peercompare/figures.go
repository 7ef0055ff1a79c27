package main

import (
	"math"

	"github.com/lockbench/lockbench/results"
)

// figure is something measured of a run.
type figure struct {
	name   string
	better int // +1: more is better, -1: less
	// of is its value. A lower bound of a value that should be small says nothing for
	// its owner and everything against him: as ours it counts as infinite, as a
	// rival's as it stands.
	of func(run results.Run, ours bool) (float64, bool)
}

func always(value func(results.Run) float64) func(results.Run, bool) (float64, bool) {
	return func(run results.Run, _ bool) (float64, bool) { return value(run), true }
}

var (
	speed = figure{"acquisitions/s", +1, always(func(r results.Run) float64 { return r.Speed.PerSecond })}

	p99 = figure{"p99 wait per client", -1, func(r results.Run, ours bool) (float64, bool) {
		wait := r.Waiting.PerClient.P99
		switch {
		case wait == nil:
			return 0, false
		case wait.AtLeast && ours:
			return math.Inf(1), true
		}
		return float64(wait.NS), true
	}}

	redisCPU = figure{"Redis CPU per acquisition", -1, func(r results.Run, _ bool) (float64, bool) {
		return known(r.Server.Window.CPUPerAcquisition())
	}}

	turns = figure{"turns, max − min per client", -1, always(func(r results.Run) float64 {
		return float64(r.Fairness.TurnsMax - r.Fairness.TurnsMin)
	})}

	gap = figure{"gap between holds", -1, func(r results.Run, _ bool) (float64, bool) { return known(r.Speed.Gap) }}

	utilisation = figure{"utilisation", +1, always(func(r results.Run) float64 { return r.Speed.Utilisation })}
)

func known(value *float64) (float64, bool) {
	if value == nil {
		return 0, false
	}
	return *value, true
}

// values are the figure round by round, without the rounds that lack it.
func (f figure) values(m measured, strategy string) []float64 {
	var all []float64
	for _, r := range m.rounds {
		if run, ok := r[strategy]; ok {
			if v, ok := f.of(run, false); ok {
				all = append(all, v)
			}
		}
	}
	return all
}

// best is the rivals' best value of a round, and whose it is.
func (f figure) best(r round, rivals []string) (value float64, name string) {
	for _, rival := range rivals {
		run, ok := r[rival]
		if !ok {
			continue
		}
		v, ok := f.of(run, false)
		if ok && (name == "" || float64(f.better)*v > float64(f.better)*value) {
			value, name = v, rival
		}
	}
	return value, name
}

// against are the ratios of one strategy's figure to the best of the round's rivals,
// and how often each rival was that.
func (f figure) against(m measured, ours string, rivals []string) (ratios []float64, best map[string]int) {
	best = map[string]int{}
	for _, r := range m.rounds {
		run, ok := r[ours]
		if !ok {
			continue
		}
		value, ok := f.of(run, true)
		rival, name := f.best(r, rivals)
		if !ok || name == "" || rival == 0 {
			continue
		}
		ratios = append(ratios, value/rival)
		best[name]++
	}
	return ratios, best
}
