package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Metric is a figure of a run that comparisons look at.
type Metric struct {
	Name   string // as --metric takes it
	Label  string // in tables
	Unit   Unit
	Higher bool // more of it is better
	// Count says that the figure counts what a strategy does for one acquisition.
	// Such figures hardly depend on the machine, so a small change of them is a real
	// one, and they have a threshold of their own.
	Count bool
	// Resolution is the least value that means anything; smaller ones, 0 among them,
	// count as this much, so that ratios exist.
	Resolution float64

	of func(results.Run) *value
}

// Unit says how to write a figure.
type Unit string

// The units of metrics.
const (
	PerSecond   Unit = "1/s"
	Nanoseconds Unit = "ns"
	Bytes       Unit = "B"
	Share       Unit = "share" // 1 is all
	Number      Unit = "n"
)

// value is a figure of one run, or with atLeast a lower bound of it.
type value struct {
	v       float64
	atLeast bool
}

// DefaultMetric is the primary metric unless another is named.
const DefaultMetric = "acq_per_s"

// Metrics are all of them, in the order of tables.
func Metrics() []Metric {
	speed := func(name, label string, unit Unit, of func(results.Run) *value) Metric {
		return Metric{Name: name, Label: label, Unit: unit, Resolution: 1, of: of}
	}
	perAcquisition := func(name, label string, unit Unit, of func(results.Run) *float64) Metric {
		return Metric{Name: name, Label: label, Unit: unit, Count: true, Resolution: 0.01, of: known(of)}
	}
	better := func(m Metric, resolution float64) Metric {
		m.Higher, m.Resolution = true, resolution
		return m
	}
	return []Metric{
		better(speed(DefaultMetric, "acquisitions", PerSecond, always(func(r results.Run) float64 { return r.Speed.PerSecond })), 0.01),
		better(speed("utilisation", "utilisation", Share, always(func(r results.Run) float64 { return r.Speed.Utilisation })), 0.001),
		speed("wait_p50", "wait p50", Nanoseconds, bound(func(r results.Run) *results.Bound { return r.Waiting.PerAcquisition.P50 })),
		speed("wait_p99", "wait p99", Nanoseconds, bound(func(r results.Run) *results.Bound { return r.Waiting.PerAcquisition.P99 })),
		speed("handoff_p50", "handoff p50", Nanoseconds, bound(func(r results.Run) *results.Bound { return r.Speed.Handoff.P50 })),
		speed("handoff_p99", "handoff p99", Nanoseconds, bound(func(r results.Run) *results.Bound { return r.Speed.Handoff.P99 })),
		speed("release_p50", "release p50", Nanoseconds, bound(func(r results.Run) *results.Bound { return r.Speed.Release.P50 })),
		speed("redis_cpu_per_acq", "Redis CPU per acq", Nanoseconds, known(redisCPU)),
		better(speed("jain", "Jain index", Share, known(func(r results.Run) *float64 { return r.Fairness.Jain })), 0.001),
		speed("starved", "starved clients", Number, always(func(r results.Run) float64 { return float64(r.Fairness.Starved) })),
		perAcquisition("commands_per_acq", "commands per acq", Number, ofWindow(func(d *results.ServerDelta) *int64 { return d.Calls })),
		perAcquisition("round_trips_per_acq", "round trips per acq", Number, ofWindow(func(d *results.ServerDelta) *int64 { return d.RoundTrips })),
		perAcquisition("bytes_in_per_acq", "bytes in per acq", Bytes, ofWindow(func(d *results.ServerDelta) *int64 { return d.BytesIn })),
		perAcquisition("bytes_out_per_acq", "bytes out per acq", Bytes, ofWindow(func(d *results.ServerDelta) *int64 { return d.BytesOut })),
		perAcquisition("attempts_per_acq", "attempts per acq", Number, func(r results.Run) *float64 { return r.Effort.Attempts }),
		perAcquisition("wake_ups_per_acq", "wake-ups per acq", Number, func(r results.Run) *float64 { return r.Effort.WakeUps }),
		perAcquisition("futile_wake_ups_per_acq", "futile wake-ups per acq", Number, func(r results.Run) *float64 { return r.Effort.Futile }),
	}
}

// ParseMetric finds a metric by its name.
func ParseMetric(name string) (Metric, error) {
	all := Metrics()
	if i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return Metric{}, fmt.Errorf("unknown metric %q (metrics: %s)", name, strings.Join(names, ", "))
}

// measurable is the value as ratios take it.
func (m Metric) measurable(v float64) float64 { return max(v, m.Resolution) }

func always(of func(results.Run) float64) func(results.Run) *value {
	return func(r results.Run) *value { return &value{v: of(r)} }
}

func known(of func(results.Run) *float64) func(results.Run) *value {
	return func(r results.Run) *value {
		if v := of(r); v != nil {
			return &value{v: *v}
		}
		return nil
	}
}

func bound(of func(results.Run) *results.Bound) func(results.Run) *value {
	return func(r results.Run) *value {
		if b := of(r); b != nil {
			return &value{v: float64(b.NS), atLeast: b.AtLeast}
		}
		return nil
	}
}

func ofWindow(total func(*results.ServerDelta) *int64) func(results.Run) *float64 {
	return func(r results.Run) *float64 {
		if r.Server.Window == nil {
			return nil
		}
		return r.Server.Window.PerAcquisition(total(r.Server.Window))
	}
}

func redisCPU(r results.Run) *float64 {
	seconds := r.Server.Window.CPUPerAcquisition()
	if seconds == nil {
		return nil
	}
	return new(*seconds * 1e9)
}
