package spin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The backoffs: how long a waiter sleeps after its n-th failed attempt, n from 0.
//
// exponential to decorrelated are those of Marc Brooker, "Exponential Backoff And
// Jitter", AWS Architecture Blog, 2015; redisson is that of Redisson's RSpinLock
// (org.redisson.api.LockOptions.ExponentialBackOff, whose defaults are 1 ms, ×2,
// at most 128 ms).
const (
	None         = "none"         // 0
	Fixed        = "fixed"        // base
	Exponential  = "exponential"  // min(cap, base × 2ⁿ)
	FullJitter   = "full-jitter"  // random between 0 and min(cap, base × 2ⁿ)
	EqualJitter  = "equal-jitter" // half of min(cap, base × 2ⁿ), plus random between 0 and the other half
	Decorrelated = "decorrelated" // min(cap, random between base and 3 × the sleep before), from base on
	AddedJitter  = "added-jitter" // min(cap, base × 2ⁿ), plus random between 0 and half of that
	Redisson     = "redisson"     // base, then min(cap, 2 × the sleep before + 0…n−1 ms)
)

var backoffs = [...]string{None, Fixed, Exponential, FullJitter, EqualJitter, Decorrelated, AddedJitter, Redisson}

// Options choose how waiters poll, and what makes the lock count as held.
type Options struct {
	Backoff string        `opt:"backoff" help:"none, fixed, exponential, full-jitter, equal-jitter, decorrelated, added-jitter or redisson"`
	Base    time.Duration `opt:"base" help:"first sleep; every sleep with backoff=fixed"`
	Cap     time.Duration `opt:"cap" help:"longest sleep of the backoffs that grow, before what added-jitter adds"`
	Tries   int           `opt:"tries" help:"failed attempts after which an acquire ends with an error; 0: as many as it takes"`

	// With WaitReplicas a WAIT follows the SET in the same round trip, and a lock that too few
	// replicas have is given back. A failover may still choose another replica.
	WaitReplicas int           `opt:"wait-replicas" help:"replicas that must have the lock before it counts (WAIT); 0 does not wait"`
	WaitTimeout  time.Duration `opt:"wait-timeout" help:"how long WAIT waits for them before the lock is given back"`
	WaitAnyway   bool          `opt:"wait-anyway" help:"use the lock also where WAIT has counted too few replicas in time"`

	Pipeline bool `opt:"pipeline" help:"send the commands of all callers down one connection, gathered into pipelines"`

	// Release is Script or Native; "" means Script. If the server has no native command, an
	// acquire fails with an errors.ErrUnsupported.
	Release string `opt:"release" help:"script, or native: the server's DELIFEQ (Valkey 9) or DELEX (Redis 8.4) and SET IFEQ"`
}

// Defaults returns full jitter within Redisson's bounds.
func Defaults() Options {
	return Options{
		Backoff: FullJitter, Base: time.Millisecond, Cap: 128 * time.Millisecond,
		WaitTimeout: 100 * time.Millisecond, Release: Script,
	}
}

// Validate returns every error, joined.
func (o Options) Validate() error {
	var problems []error
	if !slices.Contains(backoffs[:], o.Backoff) {
		problems = append(problems, fmt.Errorf("no backoff %q (there are: %s)", o.Backoff, strings.Join(backoffs[:], ", ")))
	}
	if o.Base <= 0 {
		problems = append(problems, fmt.Errorf("base must be positive, not %v", o.Base))
	}
	if o.Cap <= 0 {
		problems = append(problems, fmt.Errorf("cap must be positive, not %v", o.Cap))
	}
	if o.Cap > 0 && o.Cap < o.Base && o.grows() {
		problems = append(problems, fmt.Errorf("cap %v is smaller than base %v", o.Cap, o.Base))
	}
	if o.Tries < 0 {
		problems = append(problems, fmt.Errorf("tries must not be negative, not %d", o.Tries))
	}
	if o.WaitAnyway && o.WaitReplicas == 0 {
		problems = append(problems, errors.New("wait-anyway needs wait-replicas"))
	}
	if o.WaitReplicas < 0 {
		problems = append(problems, fmt.Errorf("wait-replicas must not be negative, not %d", o.WaitReplicas))
	}
	if o.WaitReplicas > 0 && o.WaitTimeout < time.Millisecond { // WAIT takes milliseconds; 0 means for ever
		problems = append(problems, fmt.Errorf("wait-timeout must be at least 1ms, not %v", o.WaitTimeout))
	}
	if o.WaitReplicas > 0 && o.Pipeline {
		problems = append(problems, errors.New("wait-replicas cannot be had with pipeline, where WAIT goes down another connection than the lock"))
	}
	if o.Release != "" && o.Release != Script && o.Release != Native {
		problems = append(problems, fmt.Errorf("no release %q (there are: %s, %s)", o.Release, Script, Native))
	}
	return errors.Join(problems...)
}

// grows says whether the sleep depends on the attempts before, and cap on it.
func (o Options) grows() bool { return o.Backoff != None && o.Backoff != Fixed }

// Sleeps returns a function that returns a waiter's next sleep. random returns a number in
// [0, n), as rand.Int64N does.
func (o Options) Sleeps(random func(n int64) int64) func() time.Duration {
	b := &backoff{Options: o, random: random}
	return b.next
}

// backoff is one waiter's sequence of sleeps.
type backoff struct {
	Options
	failed int           // attempts so far
	last   time.Duration // the sleep before
	random func(n int64) int64
}

// next is how long to sleep after one more failed attempt.
func (b *backoff) next() time.Duration {
	n := b.failed
	b.failed++
	switch b.Backoff {
	case Fixed:
		b.last = b.Base
	case Exponential:
		b.last = b.ceiling(n)
	case FullJitter:
		b.last = b.between(0, b.ceiling(n))
	case EqualJitter:
		half := b.ceiling(n) / 2
		b.last = half + b.between(0, half)
	case Decorrelated:
		b.last = min(b.Cap, b.between(b.Base, 3*max(b.last, b.Base)))
	case AddedJitter:
		ceiling := b.ceiling(n)
		b.last = ceiling + b.between(0, ceiling/2)
	case Redisson:
		switch {
		case n == 0:
			b.last = b.Base
		case b.last < b.Cap:
			b.last = min(b.Cap, 2*b.last+time.Duration(b.random(int64(n)))*time.Millisecond)
		}
	}
	return b.last
}

// ceiling is min(cap, base × 2ⁿ), without overflow.
func (b *backoff) ceiling(n int) time.Duration {
	if n >= 62 || b.Base > b.Cap>>n {
		return b.Cap
	}
	return b.Base << n
}

// between is random in [low, high].
func (b *backoff) between(low, high time.Duration) time.Duration {
	return low + time.Duration(b.random(int64(high-low)+1))
}
