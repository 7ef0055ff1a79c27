package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// attempts are how often something is played that the machine can spoil by standing
// still, such as a lease that must not run out.
const attempts = 6

// calmly has play find no fault, with a lease of that TTL. A fault that is found when
// the machine has stood still for a good part of the TTL may not be the lock's: then it
// is played again, with twice the TTL. A machine that stands still each time allows no
// verdict.
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

// awake has play look whether a watchdog that should be still goes on, with leases of
// that TTL. If the machine stands still for a good part of it they run out whatever the
// watchdog does: then it is played again, with twice the TTL.
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

// meanwhile is the longest standstill while do runs.
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

// unlessStill has play look for a fault that a machine that stands still makes too, on a
// correct lock: then it is played again.
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

// standstill is the longest time from one look at the clock to the next.
type standstill struct {
	last    time.Time
	longest time.Duration
}

func (w *standstill) look() {
	now := time.Now()
	w.longest, w.last = max(w.longest, now.Sub(w.last)), now
}

// sleep looks each time that a step is over.
func (w *standstill) sleep(d, step time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); w.look() {
		time.Sleep(step)
	}
}

// releaseAll says what is wrong with the releases.
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
