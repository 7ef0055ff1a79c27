package measure

import (
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
)

// machineTimes is how the machine's cores have spent their time, in seconds. All fields are
// zero where the system does not say.
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
	// The guests' time is part of user and nice already.
	processes := t.User + t.Nice + t.System
	return machineTimes{idle: idle, total: idle + processes + t.Irq + t.Softirq + t.Steal, steal: t.Steal, processes: processes}
}

// idleSince returns the idle share since an earlier reading, in percent.
func (t machineTimes) idleSince(earlier machineTimes) *float64 {
	return t.share(earlier, t.idle-earlier.idle)
}

// share returns a part of the time of all cores since an earlier reading, in percent; nil
// where the system does not say.
func (t machineTimes) share(earlier machineTimes, seconds float64) *float64 {
	if t.total <= earlier.total {
		return nil
	}
	return new(seconds / (t.total - earlier.total) * 100)
}

// enoughTicks is the seconds per core below which no share is reported: systems count CPU
// time in ticks of 10 ms, by a look at the process that runs at the tick.
const enoughTicks = 0.5

// StolenSince returns the share of all cores' time since an earlier reading, in percent, in
// which this machine was ready to run and the hypervisor ran another one. It returns nil
// where the system does not say, or the time was too short.
func (h Health) StolenSince(earlier Health) *float64 {
	if h.machine.total-earlier.machine.total < enoughTicks*cores() {
		return nil
	}
	return h.machine.share(earlier.machine, h.machine.steal-earlier.machine.steal)
}

// OtherCPUSince returns the share of all cores' time since an earlier reading, in percent,
// that other processes used than this one and Redis. redis is the CPU seconds of Redis on
// this machine in that time. Interrupts count for no process: on loopback most are our own.
// It returns nil as StolenSince does.
func (h Health) OtherCPUSince(earlier Health, redis float64) *float64 {
	if h.machine.total-earlier.machine.total < enoughTicks*cores() {
		return nil
	}
	others := h.machine.processes - earlier.machine.processes - (h.cpu - earlier.cpu).Seconds() - redis
	return h.machine.share(earlier.machine, max(0, others))
}

// cores returns the number of the machine's cores, not only of those that this process may
// use.
func cores() float64 {
	if n, err := cpu.Counts(true); err == nil && n > 0 {
		return float64(n)
	}
	return float64(runtime.NumCPU())
}
