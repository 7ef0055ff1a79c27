package watch

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/lockbench/lockbench/results"
)

// metrics collects, when it is asked, what the last report has of every strategy: the sum of all its runs.
type metrics struct {
	report atomic.Pointer[results.Report]
}

// newMetrics returns what answers Prometheus, and who must get the reports.
func newMetrics() (http.Handler, *metrics) {
	m := &metrics{}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m) // it panics only if two descriptions clash
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: patience})
	paths := http.NewServeMux()
	paths.Handle("/metrics", handler)
	return paths, m
}

// metric is one metric of a strategy: a histogram, or a counter.
type metric struct {
	*prometheus.Desc
	histogram func(results.Run) results.Distribution
	counter   func(results.Run) float64
}

// labelled are what tells the series of a metric apart; a point only in a sweep.
var labelled = []string{"strategy", "point"}

func described(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("lockbench_"+name, help, append(slices.Clone(labelled), more...), nil)
}

func counter(name, help string, of func(results.Run) float64) metric {
	return metric{Desc: described(name, help), counter: of}
}

func durations(name, help string, of func(results.Run) results.Distribution) metric {
	return metric{Desc: described(name, help), histogram: of}
}

var (
	all = []metric{
		durations("wait_seconds", "Time from asking for the lock to the lease, of waits that ended with one.",
			func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition }),
		durations("hold_seconds", "Time from the lease to the start of its release.",
			func(r results.Run) results.Distribution { return r.Speed.Hold }),
		durations("handoff_seconds", "Time from the start of a release to the next lease, where a client waited.",
			func(r results.Run) results.Distribution { return r.Speed.Handoff }),
		durations("generator_lateness_seconds", "Time by which lockbench itself delayed the starts of an open loop.",
			func(r results.Run) results.Distribution { return r.Waiting.Lateness }),
		counter("acquisitions_total", "Leases granted.",
			func(r results.Run) float64 { return float64(r.Speed.Acquisitions) }),
		counter("timeouts_total", "Waits that ended at their timeout.",
			func(r results.Run) float64 { return float64(r.Waiting.TimedOut) }),
		counter("overlaps_total", "How often more clients held a valid lease on a key than may.",
			func(r results.Run) float64 { return float64(r.Safety.Overlaps) }),
		counter("invalid_runs_total", "Runs that have ended and whose figures cannot be trusted.",
			func(r results.Run) float64 { return float64(min(1, len(r.Invalid))) }),
		counter("generator_cpu_seconds_total", "CPU time of lockbench itself.",
			func(r results.Run) float64 { return r.Generator.CPUSeconds }),
	}
	errorsTotal = described("errors_total",
		"Errors of Acquire, Release and lockbench's readings, by their text.", "error")
	scheduling = described("generator_scheduling_p99_seconds",
		"Time for which goroutines of lockbench waited for a CPU in its last run, 99th percentile.")
)

// Describe names all metrics.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, one := range all {
		to <- one.Desc
	}
	to <- errorsTotal
	to <- scheduling
}

// Collect sends the sums of the last report.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	report := m.report.Load()
	if report == nil {
		return
	}
	send := func(made prometheus.Metric, err error) {
		if err != nil {
			made = prometheus.NewInvalidMetric(errorsTotal, err)
		}
		to <- made
	}
	for _, s := range report.Summaries() {
		labels := []string{strings.ToValidUTF8(s.Name, "�"), strings.ToValidUTF8(s.Point, "�")}
		counts := map[string]int64{}
		for _, run := range s.Runs {
			for _, e := range run.Errors {
				counts[e.Error] += e.Count
			}
		}
		for kind, count := range bounded(counts) {
			send(prometheus.NewConstMetric(errorsTotal, prometheus.CounterValue, float64(count),
				append(labels, kind)...))
		}
		last := s.Runs[len(s.Runs)-1].Generator.SchedulingP99
		send(prometheus.NewConstMetric(scheduling, prometheus.GaugeValue, float64(last)/1e9, labels...))
		for _, one := range all {
			if one.histogram != nil {
				send(one.counted(s.Runs, labels))
				continue
			}
			sum := 0.0
			for _, run := range s.Runs {
				sum += one.counter(run)
			}
			send(prometheus.NewConstMetric(one.Desc, prometheus.CounterValue, sum, labels...))
		}
	}
}

const (
	mostErrors = 50  // a strategy has as many series of errors at most, and the others in one more
	mostText   = 120 // bytes of an error in a label
)

// bounded returns the counts of the most frequent errors, and of all others together. A server chose their words.
func bounded(counts map[string]int64) map[string]int64 {
	kept := map[string]int64{}
	for i, e := range results.CountErrors(counts) {
		text := strings.ToValidUTF8(e.Error, "�")
		if len(text) > mostText {
			text = strings.ToValidUTF8(text[:mostText], "") + "…"
		}
		if i >= mostErrors {
			text = "other errors"
		}
		kept[text] += e.Count
	}
	return kept
}

// counted adds up the histograms of runs, with the buckets of a classic and of a native histogram.
func (m metric) counted(runs []results.Run, labels []string) (prometheus.Metric, error) {
	var bins results.Histogram
	sum := 0.0
	for _, run := range runs {
		d := m.histogram(run)
		bins = bins.Plus(d.Histogram)
		if d.MeanNS != nil {
			sum += *d.MeanNS * float64(d.Count) / 1e9
		}
	}
	count, classic, native := uint64(0), map[float64]uint64{}, map[int]int64{}
	for _, bin := range bins {
		seconds := float64(max(1, bin.To)) / 1e9 // 0 has no logarithm
		for _, bound := range bounds {
			if seconds <= bound {
				classic[bound] += uint64(bin.Count)
			}
		}
		native[int(math.Ceil(math.Log2(seconds)*(1<<schema)))] += bin.Count
		count += uint64(bin.Count)
	}
	for _, bound := range bounds {
		classic[bound] += 0 // a bucket without values is a bucket too
	}
	old, err := prometheus.NewConstHistogram(m.Desc, count, sum, classic, labels...)
	if err != nil {
		return nil, fmt.Errorf("make a classic histogram: %w", err)
	}
	made, err := prometheus.NewConstNativeHistogram(m.Desc, count, sum, native, nil, 0, schema, 0, time.Time{},
		labels...)
	if err != nil {
		return nil, fmt.Errorf("make a native histogram: %w", err)
	}
	return histogram{old, made}, nil
}

// bounds are the upper bounds of the classic buckets in seconds, from 10 µs to 84 s.
var bounds = prometheus.ExponentialBuckets(1e-5, 2, 24)

// schema is that of the native buckets: each is wider than the last by a factor of 2^(1/8), or 9 %.
const schema = 3

// histogram is classic and native: client_golang makes such of values one by one only.
type histogram struct {
	prometheus.Metric
	native prometheus.Metric
}

// Write writes both.
func (h histogram) Write(to *dto.Metric) error {
	var native dto.Metric
	if err := h.native.Write(&native); err != nil {
		return err
	}
	if err := h.Metric.Write(to); err != nil {
		return err
	}
	both, from := to.Histogram, native.Histogram
	both.Schema, both.ZeroThreshold, both.ZeroCount = from.Schema, from.ZeroThreshold, from.ZeroCount
	both.PositiveSpan, both.PositiveDelta = from.PositiveSpan, from.PositiveDelta
	if len(from.PositiveSpan) == 0 { // without a span it would count as classic until its first value
		both.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	return nil
}
