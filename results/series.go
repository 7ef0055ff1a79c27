package results

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/lockbench/lockbench/workloads/spec"
)

// option is one of the workload's, for a name that must tell workloads apart.
type option struct{ name, value string }

// differing are the options in which a workload is not the usual one, beside its
// clients.
func differing(w spec.Spec) []option {
	usual := spec.Default()
	usual.Clients = w.Clients
	usual.Instances = max(1, min(usual.Instances, w.Clients))
	var options []option
	add := func(name string, value, usual any) {
		if fmt.Sprint(value) != fmt.Sprint(usual) {
			options = append(options, option{name, fmt.Sprint(value)})
		}
	}
	add("instances", w.Instances, usual.Instances)
	add("keys", w.Keys, usual.Keys)
	add("key-dist", w.KeyDist, usual.KeyDist)
	add("rate", w.Rate, usual.Rate)
	if w.Rate > 0 {
		add("arrivals", w.Arrivals, usual.Arrivals)
	}
	add("hold", w.Hold, usual.Hold)
	add("think", w.Think, usual.Think)
	add("ttl", w.TTL, usual.TTL)
	if w.Timeout != nil {
		options = append(options, option{"timeout", w.Timeout.String()})
	}
	add("work", w.Work, usual.Work)
	add("coalesce", w.Coalesce, usual.Coalesce)
	return options
}

// series is the name under which a strategy under a workload is followed from
// report to report: pubsub/c500/hold=1ms.
func (s summary) series() string {
	name := []string{s.Name, "c" + strconv.Itoa(s.workload.Clients)}
	for _, o := range differing(s.workload) {
		name = append(name, o.name+"="+strings.ReplaceAll(o.value, "/", "|"))
	}
	return strings.Join(name, "/")
}

// tracked are the metrics worth a chart of their own.
func tracked() []Metric {
	var metrics []Metric
	for _, name := range []string{
		"acq_per_s", "utilisation", "wait_p50", "wait_p99", "wait_per_client_p99", "handoff_p50", "handoff_p99", "jain", "starved",
		"commands_per_acq", "round_trips_per_acq", "redis_cpu_per_acq", "wake_ups_per_acq", "violations",
	} {
		m, ok := FindMetric(name)
		if !ok {
			panic("results: no metric " + name)
		}
		metrics = append(metrics, m)
	}
	return metrics
}

// point is a metric of a series: the median of the runs, or their sum, and what
// it lies between.
type point struct {
	Metric
	value, low, high float64
	runs             int
}

// points are those of the tracked metrics that are known exactly. What is only
// known to be larger than something would draw a false line.
func (s summary) points() []point {
	var points []point
	for _, m := range tracked() {
		figure := m.over(s)
		values, _ := m.values(s)
		if figure == nil || figure.AtLeast {
			continue
		}
		p := point{Metric: m, value: figure.Value, low: figure.Value, high: figure.Value, runs: len(values)}
		if !m.total {
			p.low, p.high = interval(values)
		}
		points = append(points, p)
	}
	return points
}

// interval is the 95 % interval of a median from order statistics, which takes
// six runs; of fewer it is the smallest and the largest.
func interval(values []float64) (low, high float64) {
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds) // sorted
	s := benchmath.AssumeNothing.Summary(sample, 0.95)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return sample.Values[0], sample.Values[len(sample.Values)-1]
	}
	return s.Lo, s.Hi
}

// rounded6 keeps six significant digits: more would only be noise in a file that
// is kept.
func rounded6(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return x
}
