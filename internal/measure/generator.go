package measure

import (
	"math"
	"runtime/metrics"
	"time"
)

// Health is a reading of the resources that the generator has used since it started.
type Health struct {
	at         time.Time
	cpu        time.Duration
	scheduling *metrics.Float64Histogram
	pauses     *metrics.Float64Histogram
	gcCycles   uint64
	gcCPU      float64
	machine    machineTimes
}

const (
	schedulingMetric = "/sched/latencies:seconds"
	pausesMetric     = "/sched/pauses/total/gc:seconds"
	gcCyclesMetric   = "/gc/cycles/total:gc-cycles"
	gcCPUMetric      = "/cpu/classes/gc/total:cpu-seconds"
)

// ReadHealth takes a reading.
func ReadHealth() Health {
	samples := []metrics.Sample{{Name: schedulingMetric}, {Name: pausesMetric}, {Name: gcCyclesMetric}, {Name: gcCPUMetric}}
	metrics.Read(samples)
	return Health{
		at:         time.Now(),
		cpu:        processCPU(),
		scheduling: samples[0].Value.Float64Histogram(),
		pauses:     samples[1].Value.Float64Histogram(),
		gcCycles:   samples[2].Value.Uint64(),
		gcCPU:      samples[3].Value.Float64(),
		machine:    readMachine(),
	}
}

// Spent is what the generator used between two readings.
type Spent struct {
	Wall, CPU     time.Duration
	SchedulingP99 time.Duration // upper edge of the bucket
	GCCycles      int64
	GCPause       time.Duration // estimated from the middles of the buckets
	GCCPU         float64       // seconds
	MachineIdle   *float64      // percent of all cores; nil where the system does not say
}

// Since returns the difference to an earlier reading.
func (h Health) Since(earlier Health) Spent {
	return Spent{
		Wall:          h.at.Sub(earlier.at),
		CPU:           h.cpu - earlier.cpu,
		SchedulingP99: quantileOf(h.scheduling, earlier.scheduling, 0.99),
		GCCycles:      int64(h.gcCycles - earlier.gcCycles),
		GCPause:       sumOf(h.pauses, earlier.pauses),
		GCCPU:         h.gcCPU - earlier.gcCPU,
		MachineIdle:   h.machine.idleSince(earlier.machine),
	}
}

// quantileOf returns a quantile of what a runtime histogram gained between two readings.
func quantileOf(later, earlier *metrics.Float64Histogram, q float64) time.Duration {
	var total, seen uint64
	for i := range later.Counts {
		total += later.Counts[i] - earlier.Counts[i]
	}
	if total == 0 {
		return 0
	}
	for i := range later.Counts {
		if seen += later.Counts[i] - earlier.Counts[i]; float64(seen) >= q*float64(total) {
			edge := later.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = later.Buckets[i]
			}
			return time.Duration(edge * 1e9)
		}
	}
	return 0
}

// sumOf adds up what a runtime histogram gained; each value counts as its bucket's middle.
func sumOf(later, earlier *metrics.Float64Histogram) time.Duration {
	var sum float64
	for i := range later.Counts {
		low, high := max(later.Buckets[i], 0), later.Buckets[i+1]
		if math.IsInf(high, 1) {
			high = low
		}
		sum += float64(later.Counts[i]-earlier.Counts[i]) * (low + high) / 2
	}
	return time.Duration(sum * 1e9)
}
