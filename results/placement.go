package results

import (
	"fmt"
	"slices"
	"strings"
)

// placement says on which CPUs the generator and Redis may run, and whether they share them:
// speed and CPU time depend on it. It returns "" if the generator's CPUs are not known.
func placement(r *Report) string {
	generator, redis := r.Environment.AllowedCPUs, r.Redis.AllowedCPUs
	if len(generator) == 0 || len(r.Generators) > 0 { // each generator of a merged report has its own
		return ""
	}
	where := "generator on CPU " + cpuRanges(generator)
	switch {
	case r.Redis.Source == "none" || r.Redis.Source == "":
		return where
	case len(redis) == 0 && r.Redis.Network == "remote":
		return where + ", Redis on another machine"
	case len(redis) == 0:
		return where + ", Redis on this machine, where on it is not known"
	}
	where += ", Redis on CPU " + cpuRanges(redis)
	shared := slices.DeleteFunc(slices.Clone(generator), func(cpu int) bool { return !slices.Contains(redis, cpu) })
	switch {
	case len(shared) == 0:
		return where + ": apart"
	case len(shared) == len(generator) && len(shared) == len(redis):
		return where + ": they share all"
	default:
		return where + ": they share " + cpuRanges(shared)
	}
}

// cpuRanges writes CPUs in ascending order as Linux does: 0-3,8.
func cpuRanges(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if last == i {
			parts = append(parts, fmt.Sprint(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}
