package polled

import "time"

// These are the values of the option backoff, which determines how long a waiter sleeps after its n-th failed attempt,
// with n from 0.
//
// exponential and full-jitter are from Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
// redisson is from Redisson's RSpinLock (org.redisson.api.LockOptions.ExponentialBackOff, whose defaults are 1 ms, ×2,
// at most 128 ms).
const (
	None        = "none"         // 0
	Fixed       = "fixed"        // base
	Exponential = "exponential"  // min(cap, base × 2ⁿ)
	FullJitter  = "full-jitter"  // random between 0 and min(cap, base × 2ⁿ)
	AddedJitter = "added-jitter" // min(cap, base × 2ⁿ), plus random between 0 and half of that
	Redisson    = "redisson"     // base, then min(cap, 2 × the previous sleep + a random 0 to n−1 ms)
)

var backoffs = []string{None, Fixed, Exponential, FullJitter, AddedJitter, Redisson}

// Sleeps returns a function that returns a waiter's next sleep on each call. random must return a number in [0, n), as
// rand.Int64N does.
func (o SpinOptions) Sleeps(random func(n int64) int64) func() time.Duration {
	var last time.Duration // the previous sleep
	n := -1
	return func() time.Duration {
		n++
		switch o.Backoff {
		case Fixed:
			last = o.Base
		case Exponential:
			last = o.ceiling(n)
		case FullJitter:
			last = time.Duration(random(int64(o.ceiling(n)) + 1))
		case AddedJitter:
			last = o.ceiling(n)
			last += time.Duration(random(int64(last/2) + 1))
		case Redisson:
			switch {
			case n == 0:
				last = o.Base
			case last < o.Cap:
				last = min(o.Cap, 2*last+time.Duration(random(int64(n)))*time.Millisecond)
			}
		}
		return last
	}
}

// ceiling returns min(cap, base × 2ⁿ). A large n causes no overflow.
func (o SpinOptions) ceiling(n int) time.Duration {
	if n >= 62 || o.Base > o.Cap>>n {
		return o.Cap
	}
	return o.Base << n
}
