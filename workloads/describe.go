package workloads

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
)

// Describe says in a line what the clients do, without faults and seed. It names every other
// option that is not the usual one.
func (s Spec) Describe() string {
	keys := words.Count(s.Keys, "key")
	if chosen := s.KeyDist.String(); s.Keys > 1 && chosen != "uniform" {
		keys += " (" + chosen + ")"
	}
	parts := []string{fmt.Sprintf("%s in %s on %s", words.Count(s.Clients, "client"), words.Count(s.Instances, "instance"), keys)}
	say := func(there bool, format string, args ...any) {
		if there {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	say(s.Pool > 0, "%s an instance", words.Count(s.Pool, "connection"))
	say(s.Rate > 0, "%s arrivals at %v", s.Arrivals, s.Rate)
	say(s.Burst > 0, "all wait for one holder for %v", s.Burst)
	for _, stage := range s.Stages {
		say(true, "stage %v", stage)
	}
	say(true, "hold %v", s.Hold)
	say(!s.Think.IsZero(), "think %v", s.Think)
	say(s.Work == WorkSpin || s.Work == WorkCounter, "work %s", s.Work)
	say(s.Work == WorkCounter && s.Counter == CounterApart, "counter apart")
	say(s.Work == WorkCounter && s.Fence != FenceAll, "fence %s", s.Fence)
	say(s.Coalesce, "coalesced")
	say(true, "TTL %v", s.TTL)
	if s.Timeout != nil {
		say(true, "timeout %v", *s.Timeout)
	}
	if s.Iterations > 0 {
		say(true, "%d acquisitions after %v of warm-up", s.Iterations, s.Warmup)
	} else {
		say(true, "%v after %v of warm-up", s.Duration, s.Warmup)
	}
	return strings.Join(parts, " · ")
}
