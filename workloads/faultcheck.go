package workloads

import (
	"fmt"
	"time"
)

// Lasts is how long a fault takes under a workload, with what precedes it; 0 means that it is
// over at once.
func (s Spec) Lasts(f Fault) time.Duration {
	f = s.resolved(f)
	return time.Duration(f.For + f.Lag)
}

// faultsWrong says what is wrong with the faults within this workload.
func (s Spec) faultsWrong() []error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	for _, f := range s.Faults {
		name := "--fault " + f.Name
		kind := f.Kind()
		if check(kind.Name != "", "%s: there is no such fault", name); kind.Name == "" {
			continue
		}
		lasts := s.Lasts(f)
		for _, o := range kind.Options() {
			if err := o.check(f); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
		check(f.Every <= 0 || f.Every >= leastEvery, "%s: every must be at least %v, not %v", name, leastEvery, f.Every)
		check(f.Every <= 0 || time.Duration(f.Every) > lasts, "%s: it is to come every %v but lasts %v", name, f.Every, lasts)
		why := ""
		if s.resolved(f) != f {
			why = fmt.Sprintf("; how long it takes follows from --ttl %v unless it is said", s.TTL)
		}
		check(s.Iterations > 0 || time.Duration(f.At)+lasts < time.Duration(s.Duration) ||
			f.slows() && time.Duration(f.At)+lasts == time.Duration(s.Duration),
			"%s: it would be over %v after the window opens, which is %v long (--duration)%s", name, time.Duration(f.At)+lasts, s.Duration, why)
		check(f.Instances <= s.Instances, "%s: it cannot hit %d of %d instances", name, f.Instances, s.Instances)
		check(f.Name != WaiterCrash || f.N <= maxWaiters, "%s: n must be at most %d, not %d", name, maxWaiters, f.N)
		check(f.Jitter <= f.Delay, "%s: jitter %v is more than the delay of %v", name, f.Jitter, f.Delay)
		check(f.Delay%Duration(time.Millisecond) == 0 && f.Jitter%Duration(time.Millisecond) == 0,
			"%s: delay and jitter are whole milliseconds, not %v and %v", name, f.Delay, f.Jitter)
	}
	check(len(s.Faults) == 0 || s.Burst == 0, "--fault does not go with --burst, where everybody waits for everybody")
	return wrong
}

// slows says that locks are available during the fault: the run need not show its end, so it
// may last as long as the window.
func (f Fault) slows() bool { return f.Name == Latency || f.Name == Bandwidth }

// leastEvery is the least time between two injections of a fault: each is reported.
const leastEvery = Duration(10 * time.Millisecond)

// maxWaiters is how many waiters may die at a time.
const maxWaiters = 1000
