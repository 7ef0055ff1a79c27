package workloads

import (
	"fmt"
	"slices"
	"time"
)

// Idle names the given options that have no effect beside the others, at any point of a
// sweep. Each text begins with the flag.
func (d Draft) Idle() []string {
	points, err := d.Points()
	if err != nil {
		return nil // Points reports that
	}
	var idle []string
	for _, check := range idleChecks {
		if d.given[check.option] == nil {
			continue
		}
		works := slices.ContainsFunc(points, func(p Point) bool { return check.why(p.Workload) == "" })
		if !works {
			idle = append(idle, check.why(points[0].Workload))
		}
	}
	return idle
}

// idleChecks say why an option has no effect in a workload; "" where it has one.
var idleChecks = []struct {
	option string
	why    func(Spec) string
}{
	{"duration", func(s Spec) string {
		return since(s.Iterations > 0, "--duration has no effect with --iterations, which end the window")
	}},
	{"key-dist", func(s Spec) string {
		if s.Keys > 1 && s.KeyDist.kind == "hotspot" {
			return since(s.KeyDist.hot >= s.Keys, "--key-dist %v has no effect: there are only %d keys, and all are hot", s.KeyDist, s.Keys)
		}
		return since(s.Keys <= 1, "--key-dist %v has no effect on one key (--keys)", s.KeyDist)
	}},
	{"arrivals", func(s Spec) string {
		return since(s.Rate == 0, "--arrivals has no effect without --rate: clients of a closed loop do not arrive")
	}},
	{"work", func(s Spec) string {
		return since(s.Work == WorkSpin && s.Hold.IsZero(), "--work spin has no effect without --hold, for which it computes")
	}},
	{"fence", func(s Spec) string {
		return since(s.Work != WorkCounter, "--fence has no effect without --work counter, which is what tokens protect")
	}},
	{"counter", func(s Spec) string {
		return since(s.Work != WorkCounter, "--counter has no effect without --work counter, whose counter it places")
	}},
	{"coalesce", func(s Spec) string {
		return since(s.Coalesce && s.Clients <= s.Instances, "--coalesce has no effect with one client an instance (--instances): nobody is there to share with")
	}},
	{"fault", func(s Spec) string {
		for _, f := range s.Faults {
			if s.Iterations == 0 && f.Every > 0 && time.Duration(f.At+f.Every)+s.Lasts(f) >= time.Duration(s.Duration) {
				return fmt.Sprintf("--fault %v: every has no effect, for the window of %v (--duration) is over before the second time", f, s.Duration)
			}
		}
		return ""
	}},
	{"pool", func(s Spec) string {
		return since(s.Instances > 0 && s.Pool > s.ClientsPerInstance(), "--pool %d has no effect beyond the %d clients of an instance", s.Pool, s.ClientsPerInstance())
	}},
}

func since(is bool, format string, args ...any) string {
	if !is {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
