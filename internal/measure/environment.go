package measure

import (
	"runtime"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"

	"github.com/lockbench/lockbench/results"
)

// Environment describes this machine. What the machine does not report stays empty.
func Environment() results.Environment {
	e := results.Environment{
		OS:              runtime.GOOS,
		Arch:            runtime.GOARCH,
		CPUs:            runtime.NumCPU(),
		GoMaxProcs:      runtime.GOMAXPROCS(0),
		Go:              runtime.Version(),
		AllowedCPUs:     Affinity(0),
		TimerOvershoot:  timerOvershoot(),
		ClockResolution: clockResolution(),
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

// timerOvershoot is how late a sleep of 50 µs ends on the idle machine: the median, in
// nanoseconds. Holds and backoffs cannot be more exact.
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

// clockResolution is the smallest difference seen between two readings of the clock, in
// nanoseconds.
func clockResolution() int64 {
	clock := NewClock()
	smallest := int64(time.Second)
	for range 1000 {
		before := clock.Now()
		after := clock.Now()
		for after == before {
			after = clock.Now()
		}
		smallest = min(smallest, after-before)
	}
	return smallest
}
