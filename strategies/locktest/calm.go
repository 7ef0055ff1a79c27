package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// attempts is how often a check repeats a step that a stalled machine can spoil, such as a
// lease that must not run out.
const attempts = 6

// calmly plays with leases of that TTL. play returns a fault, "" for none. If the machine stood
// still for a fifth of the TTL meanwhile, that may have been the cause, and calmly plays again,
// with twice the TTL; after the last attempt the check is not judged.
func (s *stage) calmly(ttl time.Duration, play func(ttl time.Duration) (fault string)) {
	for attempt := 1; ; attempt, ttl = attempt+1, 2*ttl {
		var fault string
		longest := s.standstill(func() { fault = play(ttl) })
		switch {
		case fault == "":
			return
		case longest < ttl/5:
			s.fatalf("%s", fault)
		case attempt == attempts:
			s.notJudged("%s, with a TTL of %v, but the machine stood still for %v", fault, ttl, longest)
		}
		s.Logf("%s, with a TTL of %v, but the machine stood still for %v: once more", fault, ttl, longest)
	}
}

// awake is calmly for plays that look whether a watchdog keeps a lease that it should not. If
// the machine stands still, the lease runs out whatever the watchdog does.
func (s *stage) awake(ttl time.Duration, play func(ttl time.Duration)) {
	s.calmly(ttl, func(ttl time.Duration) (fault string) {
		if longest := s.standstill(func() { play(ttl) }); s.info.Claims.Watchdog && longest >= ttl/3 {
			return "a watchdog that went on might not have kept the lease"
		}
		return ""
	})
}

// measure returns the longest time while do runs in which this process or a server stood
// still, or a try-lock took.
func (s *stage) measure(do func()) (longest time.Duration) {
	before := s.slowest.Swap(0)
	ended, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ended:
				return
			}
			for _, o := range s.outside {
				_ = o.Ping(context.Background()).Err()
			}
			longest = max(longest, time.Since(last))
		}
	}()
	func() {
		defer func() { close(ended); <-looked }() // do may end the check
		do()
	}()
	longest = max(longest, time.Duration(s.slowest.Load()))
	s.slowest.Store(max(before, int64(longest)))
	return longest
}

// releaseAll releases the leases and returns the first error.
func (s *stage) releaseAll(leases []strategies.Lease) (fault string) {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	for _, lease := range leases {
		if err := lease.Release(ctx); err != nil && fault == "" {
			fault = fmt.Sprintf("release: %v", err)
		}
	}
	return fault
}
