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

// calmly fails the check if play finds a fault, with a lease of that TTL. If the machine
// stood still for a fifth of the TTL, the fault may not be the lock's: calmly then repeats
// play with twice the TTL. After the last attempt the check is not judged.
func (s *stage) calmly(ttl time.Duration, play func(ttl time.Duration, w *standstill) (fault string)) {
	for attempt := 1; ; attempt, ttl = attempt+1, 2*ttl {
		w := &standstill{last: time.Now()}
		fault := play(ttl, w)
		w.look()
		if fault == "" {
			return
		}
		if w.longest < ttl/5 {
			s.fatalf("%s", fault)
		}
		if attempt == attempts {
			s.notJudged("%s, with a TTL of %v, but the machine stood still for %v", fault, ttl, w.longest)
		}
		s.Logf("%s, with a TTL of %v, but the machine stood still for %v: once more", fault, ttl, w.longest)
	}
}

// awake runs play, which looks whether a watchdog keeps a lease that it should not. If the
// machine stands still for a third of the TTL, the lease runs out whatever the watchdog does:
// awake then repeats play with twice the TTL.
func (s *stage) awake(ttl time.Duration, play func(ttl time.Duration)) {
	for attempt := 1; ; attempt, ttl = attempt+1, 2*ttl {
		longest := meanwhile(func() { play(ttl) })
		if !s.info.Claims.Watchdog || longest < ttl/3 {
			return
		}
		if attempt == attempts {
			s.notJudged("the machine stood still for %v of a TTL of %v: a watchdog that went on might not have kept the lease", longest, ttl)
		}
		s.Logf("the machine stood still for %v of a TTL of %v: once more", longest, ttl)
	}
}

// meanwhile returns the longest standstill while do runs.
func meanwhile(do func()) time.Duration {
	w := &standstill{last: time.Now()}
	ended, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-time.After(5 * time.Millisecond):
				w.look()
			case <-ended:
				return
			}
		}
	}()
	func() {
		defer func() { close(ended); <-looked }() // do may end the check
		do()
	}()
	w.look()
	return w.longest
}

// unlessStill fails the check if play finds a fault. If the machine stood still for half of by
// or longer, a correct lock may show the same fault: unlessStill then repeats play.
func (s *stage) unlessStill(play func() (fault string, by time.Duration)) {
	for attempt := 1; ; attempt++ {
		var fault string
		var by time.Duration
		longest := meanwhile(func() { fault, by = play() })
		switch {
		case fault == "":
			return
		case longest < by/2:
			s.fatalf("%s", fault)
		case attempt == attempts:
			s.notJudged("%s, but the machine stood still for %v", fault, longest)
		}
		s.Logf("%s, but the machine stood still for %v: once more", fault, longest)
	}
}

// standstill measures the longest time between two looks at the clock.
type standstill struct {
	last    time.Time
	longest time.Duration
}

func (w *standstill) look() {
	now := time.Now()
	w.longest, w.last = max(w.longest, now.Sub(w.last)), now
}

// sleep looks at the clock after each step.
func (w *standstill) sleep(d, step time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); w.look() {
		time.Sleep(step)
	}
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
