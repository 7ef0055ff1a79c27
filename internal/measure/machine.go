package measure

import "github.com/shirou/gopsutil/v4/cpu"

// machineTimes is how the machine's cores have spent their time, in seconds;
// zeros where the system does not say.
type machineTimes struct{ idle, total float64 }

func readMachine() machineTimes {
	all, err := cpu.Times(false)
	if err != nil || len(all) == 0 {
		return machineTimes{}
	}
	t := all[0]
	idle := t.Idle + t.Iowait
	// The guests' time is part of user and nice already.
	return machineTimes{idle, idle + t.User + t.Nice + t.System + t.Irq + t.Softirq + t.Steal}
}

// idleSince is the idle share since an earlier reading, in percent.
func (t machineTimes) idleSince(earlier machineTimes) *float64 {
	if t.total <= earlier.total {
		return nil
	}
	idle := (t.idle - earlier.idle) / (t.total - earlier.total) * 100
	return &idle
}
