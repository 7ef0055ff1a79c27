package measure

import (
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
)

// machineTimes is how the machine's cores have spent their time, in seconds;
// zeros where the system does not say.
type machineTimes struct {
	idle, total float64
	steal       float64 // in which the hypervisor ran somebody else
	processes   float64 // in which processes ran, in user mode and in the kernel; interrupts are not theirs
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

// idleSince is the idle share since an earlier reading, in percent.
func (t machineTimes) idleSince(earlier machineTimes) *float64 {
	return t.share(earlier, t.idle-earlier.idle)
}

// share is a part of the time that all cores have had since an earlier reading, in
// percent; nil where the system does not say.
func (t machineTimes) share(earlier machineTimes, seconds float64) *float64 {
	if t.total <= earlier.total {
		return nil
	}
	percent := seconds / (t.total - earlier.total) * 100
	return &percent
}

// enoughTicks is the time of one core below which shares are not told: systems count it
// in hundredths of a second, by looking who runs just then.
const enoughTicks = 0.5

// StolenSince is the share of all cores' time since an earlier reading, in percent, in
// which this machine was ready to run and the hypervisor ran another one. nil where the
// system does not say, or there was too little time.
func (h Health) StolenSince(earlier Health) *float64 {
	if h.machine.total-earlier.machine.total < enoughTicks*cores() {
		return nil
	}
	return h.machine.share(earlier.machine, h.machine.steal-earlier.machine.steal)
}

// OtherCPUSince is the share of all cores' time since an earlier reading, in percent, in
// which processes ran that are neither this one nor Redis, which used so many seconds on
// this machine meanwhile. Interrupts count as nobody's: on loopback most are our own. nil
// as in StolenSince.
func (h Health) OtherCPUSince(earlier Health, redis float64) *float64 {
	if h.machine.total-earlier.machine.total < enoughTicks*cores() {
		return nil
	}
	others := h.machine.processes - earlier.machine.processes - (h.cpu - earlier.cpu).Seconds() - redis
	return h.machine.share(earlier.machine, max(0, others))
}

// cores are the machine's, whichever of them this process may use.
func cores() float64 {
	if n, err := cpu.Counts(true); err == nil && n > 0 {
		return float64(n)
	}
	return float64(runtime.NumCPU())
}
