package watch

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/lockbench/lockbench/results"
)

// metrics is a Prometheus collector. For every strategy it sums the figures of all runs in the last report.
type metrics struct {
	registry *prometheus.Registry
	classic  bool // send histograms without native buckets
	last     atomic.Pointer[seen]

	mu     sync.Mutex
	series map[[2]string]*series // by strategy and point
}

// seen is a report and the open waits of its last run. After the end of that run, the list of waits is empty.
type seen struct {
	report  *results.Report
	waiting []results.Wait
}

// series holds the sums of one strategy or, in a sweep, of one strategy at one point.
type series struct {
	ended total // the sum of all runs except the last, which may still be under way
	runs  int   // number of runs in the sum
	// texts are the errors that have a separate series. They are the first ones seen, so that no counter decreases.
	texts map[string]bool
	// cpu is the largest sum of the servers' CPU time so far. The counter shows this maximum, so that it does not decrease
	// when a reading fails.
	cpu float64
}

// total holds the metrics of several runs, added up.
type total struct {
	bins   []results.Histogram // by the index of the metric in all
	sums   []float64           // by the same index: the count, or the sum of a histogram in seconds
	errors map[string]int64    // by series
	cpu    float64             // of the servers
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewPedanticRegistry(), series: map[[2]string]*series{}}
	m.registry.MustRegister(m) // it panics only if two descriptions clash
	return m
}

// pages returns the handler that Prometheus scrapes.
func (m *metrics) pages() http.Handler {
	handler := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: patience})
	paths := http.NewServeMux()
	paths.Handle("/metrics", handler)
	return paths
}

// metric is a histogram or a counter that sums all runs of a strategy.
type metric struct {
	*prometheus.Desc
	histogram func(results.Run) results.Distribution
	counter   func(results.Run) float64
}

// gauge is a figure of a strategy's last run, computed with its open waits; nil if it is unknown.
type gauge struct {
	*prometheus.Desc
	of func(results.Run, []results.Wait) *float64
}

// labelled lists the names of a series' labels. The value of point is empty outside a sweep.
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
		durations("wait_seconds", "Time from the call of Acquire to the lease, for waits that ended with a lease.",
			func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition }),
		durations("handoff_seconds", "Time from the start of a release to the next lease, if a client waited.",
			func(r results.Run) results.Distribution { return r.Speed.Handoff }),
		counter("acquisitions_total", "Leases granted.",
			func(r results.Run) float64 { return float64(r.Speed.Acquisitions) }),
		counter("timeouts_total", "Waits that ended at their timeout.",
			func(r results.Run) float64 { return float64(r.Waiting.TimedOut) }),
		counter("overlaps_total", "Times that more clients held valid leases of a key than the lock admits.",
			func(r results.Run) float64 { return float64(r.Safety.Overlaps) }),
		counter("invalid_runs_total", "Ended runs whose figures cannot be trusted.",
			func(r results.Run) float64 { return float64(min(1, len(r.Invalid))) }),
		counter("generator_cpu_seconds_total", "CPU time of lockbench itself.",
			func(r results.Run) float64 { return r.Generator.CPUSeconds }),
	}
	gauges = []gauge{
		{
			described("wait_p99_seconds",
				"99th percentile of the waits of the last run so far, open waits included; it may be a lower bound."),
			func(r results.Run, _ []results.Wait) *float64 {
				if p99 := r.Waiting.PerAcquisition.P99; p99 != nil {
					return new(float64(p99.NS) / 1e9)
				}
				return nil
			},
		},
		{
			described("waiting_clients", "Clients that wait at this moment; 0 after the run."),
			func(_ results.Run, waiting []results.Wait) *float64 { return new(float64(len(waiting))) },
		},
		{
			described("oldest_wait_seconds", "Age of the oldest wait at this moment; 0 without a waiting client."),
			func(_ results.Run, waiting []results.Wait) *float64 {
				oldest := int64(0)
				for _, w := range waiting {
					oldest = max(oldest, w.NS)
				}
				return new(float64(oldest) / 1e9)
			},
		},
		{
			described("starved_clients",
				"Clients of the last run that waited and had no acquisition in the time of two fair rounds."),
			func(r results.Run, _ []results.Wait) *float64 {
				if starved := r.Fairness.Starved; starved != nil {
					return new(float64(*starved))
				}
				return nil
			},
		},
		{
			described("generator_scheduling_p99_seconds",
				"99th percentile of the time for which goroutines of lockbench waited for a CPU in the last run."),
			func(r results.Run, _ []results.Wait) *float64 { return new(float64(r.Generator.SchedulingP99) / 1e9) },
		},
	}
	errorsTotal = described("errors_total",
		"Errors of Acquire and Release, and of lockbench's own queries to the server, by error text.", "error")
	serverCPU = described("server_cpu_seconds_total",
		"CPU time of all nodes of the lock's server, including lockbench's own queries.")
	runTime = described("run_timestamp_seconds",
		"Unix time at which a run's window began (edge start), and until which it was measured (edge end).",
		"run", "edge")
)

// Describe sends the descriptions of all metrics.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, one := range all {
		to <- one.Desc
	}
	for _, one := range gauges {
		to <- one.Desc
	}
	to <- errorsTotal
	to <- serverCPU
	to <- runTime
}

// Collect sends the metrics of all strategies in the last report. It adds every run of a strategy except the last one
// to series.ended. It adds each run only once.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last.Load()
	if last == nil || len(last.report.Runs) == 0 {
		return
	}
	underWay := last.report.Runs[len(last.report.Runs)-1]
	for _, s := range last.report.Summaries() {
		labels := []string{strings.ToValidUTF8(s.Name, "�"), strings.ToValidUTF8(s.Point, "�")}
		of := m.series[[2]string(labels)]
		if of == nil {
			none := total{bins: make([]results.Histogram, len(all)), sums: make([]float64, len(all)), errors: map[string]int64{}}
			of = &series{ended: none, texts: map[string]bool{}}
			m.series[[2]string(labels)] = of
		}
		for ; of.runs < len(s.Runs)-1; of.runs++ {
			of.ended = of.plus(s.Runs[of.runs])
		}
		var waiting []results.Wait
		if underWay.Strategy == s.Name && underWay.Point == s.Point {
			waiting = last.waiting
		}
		m.send(of, s.Runs, waiting, labels, to)
	}
}

// send sends the metrics of a strategy: the sums over of.ended and the last run, and the gauges of the last run.
func (m *metrics) send(
	of *series, runs []results.Run, waiting []results.Wait, labels []string, to chan<- prometheus.Metric,
) {
	send := func(made prometheus.Metric, err error) {
		if err != nil {
			made = prometheus.NewInvalidMetric(errorsTotal, err)
		}
		to <- made
	}
	value := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
		send(prometheus.NewConstMetric(d, kind, value, slices.Concat(labels, more)...))
	}
	last := runs[len(runs)-1]
	now := of.plus(last)
	for i, one := range all {
		if one.histogram != nil {
			send(m.counted(one.Desc, now.bins[i], now.sums[i], labels))
		} else {
			value(one.Desc, prometheus.CounterValue, now.sums[i])
		}
	}
	for _, one := range gauges {
		if known := one.of(last, waiting); known != nil {
			value(one.Desc, prometheus.GaugeValue, *known)
		}
	}
	for kind, count := range now.errors {
		value(errorsTotal, prometheus.CounterValue, float64(count), kind)
	}
	if of.cpu = max(of.cpu, now.cpu); of.cpu > 0 { // 0 means unknown
		value(serverCPU, prometheus.CounterValue, of.cpu)
	}
	for i, run := range runs {
		start := float64(run.Started.UnixNano()) / 1e9
		value(runTime, prometheus.GaugeValue, start, strconv.Itoa(i+1), "start")
		value(runTime, prometheus.GaugeValue, start+float64(run.WindowNS)/1e9, strconv.Itoa(i+1), "end")
	}
}

// plus returns the sum of the ended runs and of one more run.
func (s *series) plus(run results.Run) total {
	sum := total{slices.Clone(s.ended.bins), slices.Clone(s.ended.sums), maps.Clone(s.ended.errors), s.ended.cpu}
	for i, one := range all {
		if one.histogram == nil {
			sum.sums[i] += one.counter(run)
			continue
		}
		d := one.histogram(run)
		sum.bins[i] = sum.bins[i].Plus(d.Histogram)
		if d.MeanNS != nil {
			sum.sums[i] += *d.MeanNS * float64(d.Count) / 1e9
		}
	}
	if d := run.Server.Window; d != nil && d.CPU != nil {
		sum.cpu += *d.CPU
	}
	for _, e := range run.Errors {
		sum.errors[s.kind(e.Error)] += e.Count
	}
	return sum
}

const (
	mostErrors = 50  // all further errors of a strategy share one additional series
	mostText   = 120 // bytes of an error in a label
)

// kind returns the label of an error. A server may have chosen the text, so kind limits its length and the number of
// labels.
func (s *series) kind(text string) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	if !s.texts[text] && len(s.texts) >= mostErrors {
		return "other errors"
	}
	s.texts[text] = true
	return text
}

// counted returns a histogram with classic buckets and, unless m.classic is set, with native buckets too.
func (m *metrics) counted(
	desc *prometheus.Desc, bins results.Histogram, sum float64, labels []string,
) (prometheus.Metric, error) {
	count, classic, native := uint64(0), map[float64]uint64{}, map[int]int64{}
	above := bounds // the classic buckets that are not counted yet
	for _, bin := range bins {
		seconds := float64(max(1, bin.To)) / 1e9 // 0 has no logarithm
		for ; len(above) > 0 && above[0] < seconds; above = above[1:] {
			classic[above[0]] = count
		}
		native[int(math.Ceil(math.Log2(seconds)*(1<<schema)))] += bin.Count
		count += uint64(bin.Count)
	}
	for _, bound := range above {
		classic[bound] = count
	}
	old, err := prometheus.NewConstHistogram(desc, count, sum, classic, labels...)
	if err != nil {
		return nil, fmt.Errorf("make a classic histogram: %w", err)
	}
	if m.classic {
		return old, nil
	}
	made, err := prometheus.NewConstNativeHistogram(desc, count, sum, native, nil, 0, schema, 0, time.Time{},
		labels...)
	if err != nil {
		return nil, fmt.Errorf("make a native histogram: %w", err)
	}
	return histogram{old, made}, nil
}

// bounds are the upper bounds of the classic buckets in seconds, from 10 µs to 84 s.
var bounds = prometheus.ExponentialBuckets(1e-5, 2, 24)

// schema is the resolution of native histograms. Each bucket is wider than the previous one by a factor of 2^(1/8),
// about 9 %.
const schema = 3

// histogram combines a classic and a native histogram into one metric. A Histogram of client_golang could be filled
// only one value at a time.
type histogram struct {
	prometheus.Metric
	native prometheus.Metric
}

// Write writes the classic and the native buckets into one histogram.
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
	if len(from.PositiveDelta) == 0 { // without any native bucket Prometheus treats this and all later series as classic
		both.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(1))}}
		both.PositiveDelta = []int64{0}
	}
	return nil
}
