package measure

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"

	"github.com/lockbench/lockbench/results"
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

// ReadHealth reads the CPU time of the generator and of the machine, the times for which goroutines waited for a CPU,
// and the work of the garbage collector.
func ReadHealth() Health {
	samples := []metrics.Sample{
		{Name: schedulingMetric},
		{Name: pausesMetric},
		{Name: gcCyclesMetric},
		{Name: gcCPUMetric},
	}
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

// Spent holds the resources that the generator used between two readings.
type Spent struct {
	Wall, CPU     time.Duration
	SchedulingP99 time.Duration // upper edge of the bucket
	GCCycles      int64
	GCPause       time.Duration // estimated from the midpoints of histogram buckets
	GCCPU         float64       // seconds
	MachineIdle   *float64      // percent of all cores; nil if the system does not report it
}

// Since returns the resources that the generator used since an earlier reading.
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

// quantileOf returns a quantile of the values that a runtime histogram gained between two readings.
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

// sumOf returns the sum of the values that a runtime histogram gained between two readings. Each value counts as the
// midpoint of its bucket.
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

// machineTimes holds the total times of all cores of the machine since it started, in seconds. All fields are 0 if the
// system does not report them.
type machineTimes struct {
	idle, total float64
	steal       float64 // time in which the hypervisor ran another machine
	processes   float64 // time in which processes ran, in user mode and in the kernel; without interrupts
}

func readMachine() machineTimes {
	all, err := cpu.Times(false)
	if err != nil || len(all) == 0 {
		return machineTimes{}
	}
	t := all[0]
	idle := t.Idle + t.Iowait
	// User and Nice already include the time of guests.
	processes := t.User + t.Nice + t.System
	return machineTimes{
		idle: idle, total: idle + processes + t.Irq + t.Softirq + t.Steal, steal: t.Steal,
		processes: processes,
	}
}

// idleSince returns the share of idle time of all cores since an earlier reading, in percent; nil if the system does
// not report that time.
func (t machineTimes) idleSince(earlier machineTimes) *float64 {
	return t.share(earlier, t.idle-earlier.idle)
}

// share returns seconds as a percentage of the time of all cores since an earlier reading; nil if the system does not
// report that time.
func (t machineTimes) share(earlier machineTimes, seconds float64) *float64 {
	if t.total <= earlier.total {
		return nil
	}
	return new(seconds / (t.total - earlier.total) * 100)
}

// enoughTicks is the CPU time in seconds per core below which StolenSince and OtherCPUSince report no share. Systems
// count CPU time in ticks of 10 ms and attribute each tick to the process that runs at that moment.
const enoughTicks = 0.5

// StolenSince returns the share of all cores' time since an earlier reading, in percent, in which this machine was
// ready to run but the hypervisor ran another one. It returns nil if the system does not report that share or the time
// was too short.
func (h Health) StolenSince(earlier Health) *float64 {
	if h.machine.total-earlier.machine.total < enoughTicks*cores() {
		return nil
	}
	return h.machine.share(earlier.machine, h.machine.steal-earlier.machine.steal)
}

// OtherCPUSince returns the share of all cores' time since an earlier reading, in percent, that processes other than
// this one and Redis used. redis is the CPU time in seconds that Redis used on this machine in that time. Time in
// interrupts counts for no process, because on loopback most interrupts come from lockbench itself. It returns nil in
// the same cases as StolenSince.
func (h Health) OtherCPUSince(earlier Health, redis float64) *float64 {
	if h.machine.total-earlier.machine.total < enoughTicks*cores() {
		return nil
	}
	others := h.machine.processes - earlier.machine.processes - (h.cpu - earlier.cpu).Seconds() - redis
	return h.machine.share(earlier.machine, max(0, others))
}

// cores returns the number of all cores of the machine, including those that this process may not use.
func cores() float64 {
	if n, err := cpu.Counts(true); err == nil && n > 0 {
		return float64(n)
	}
	return float64(runtime.NumCPU())
}

// Environment returns a description of this machine. Fields that the machine does not report stay empty.
func Environment() results.Environment {
	e := results.Environment{
		OS:             runtime.GOOS,
		Arch:           runtime.GOARCH,
		CPUs:           runtime.NumCPU(),
		GoMaxProcs:     runtime.GOMAXPROCS(0),
		Go:             runtime.Version(),
		AllowedCPUs:    Affinity(0),
		TimerOvershoot: timerOvershoot(),
	}
	if kernel, err := host.KernelVersion(); err == nil {
		e.Kernel = kernel
	}
	if info, err := cpu.Info(); err == nil && len(info) > 0 {
		e.CPUModel = info[0].ModelName
	}
	if n, err := cpu.Counts(true); err == nil && n > 0 {
		e.CPUs = n
	}
	return e
}

// timerOvershoot measures several sleeps of 50 µs on the idle machine. It returns the median of the times by which they
// are too long, in nanoseconds. Holds and backoffs cannot be more exact.
func timerOvershoot() int64 {
	const asked, samples = 50 * time.Microsecond, 21
	var late []int64
	for range samples {
		start := time.Now()
		time.Sleep(asked)
		late = append(late, int64(time.Since(start)-asked))
	}
	slices.Sort(late)
	return late[samples/2]
}
