package polled

import "time"

// The backoffs: how long a waiter sleeps after its n-th failed attempt, n from 0.
//
// exponential and full-jitter are those of Marc Brooker, "Exponential Backoff And Jitter", AWS
// Architecture Blog, 2015; redisson is that of Redisson's RSpinLock
// (org.redisson.api.LockOptions.ExponentialBackOff, whose defaults are 1 ms, ×2, at most 128 ms).
const (
	None        = "none"         // 0
	Fixed       = "fixed"        // base
	Exponential = "exponential"  // min(cap, base × 2ⁿ)
	FullJitter  = "full-jitter"  // random between 0 and min(cap, base × 2ⁿ)
	AddedJitter = "added-jitter" // min(cap, base × 2ⁿ), plus random between 0 and half of that
	Redisson    = "redisson"     // base, then min(cap, 2 × the sleep before + 0…n−1 ms)
)

var backoffs = []string{None, Fixed, Exponential, FullJitter, AddedJitter, Redisson}

// backoff is one of them with its bounds.
type backoff struct {
	name      string
	base, cap time.Duration
}

// Sleeps returns a function that returns a waiter's next sleep. random returns a number in
// [0, n), as rand.Int64N does.
func (o SpinOptions) Sleeps(random func(n int64) int64) func() time.Duration {
	return o.backoff().sleeps(random)
}

func (o SpinOptions) backoff() backoff { return backoff{o.Backoff, o.Base, o.Cap} }

func (b backoff) sleeps(random func(n int64) int64) func() time.Duration {
	var last time.Duration // the sleep before
	n := -1
	return func() time.Duration {
		n++
		switch b.name {
		case Fixed:
			last = b.base
		case Exponential:
			last = b.ceiling(n)
		case FullJitter:
			last = time.Duration(random(int64(b.ceiling(n)) + 1))
		case AddedJitter:
			last = b.ceiling(n)
			last += time.Duration(random(int64(last/2) + 1))
		case Redisson:
			switch {
			case n == 0:
				last = b.base
			case last < b.cap:
				last = min(b.cap, 2*last+time.Duration(random(int64(n)))*time.Millisecond)
			}
		}
		return last
	}
}

// ceiling is min(cap, base × 2ⁿ), without overflow.
func (b backoff) ceiling(n int) time.Duration {
	if n >= 62 || b.base > b.cap>>n {
		return b.cap
	}
	return b.base << n
}
