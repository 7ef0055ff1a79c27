package lock

import (
	"errors"
	"fmt"
	"time"
)

// Option configures a Locker. It is passed to a lock's constructor, such as handoff.New.
type Option interface{ set(*settings) }

// CallOption configures one call of Acquire, TryAcquire or WithLock. Passed to the constructor, it applies to all calls
// that do not have the same option.
type CallOption interface {
	Option
	perCall()
}

type (
	option     func(*settings)
	callOption func(*settings)
)

func (o option) set(s *settings)     { o(s) }
func (o callOption) set(s *settings) { o(s) }
func (callOption) perCall()          {}

// settings contains the values that the options set, and defaults for all other options.
type settings struct {
	prefix   string
	ttl      time.Duration
	wait     time.Duration // valid only if waits is true
	waits    bool          // the option Wait was given
	watchdog bool
	hooks    *Hooks // nil means none
}

// DefaultTTL is the TTL of leases if no option TTL is given. Redisson has the same default.
const DefaultTTL = 30 * time.Second

// TTL sets how long a lease lasts unless it is extended or released. If a holder dies, its lock stays taken until the
// TTL expires. The default is DefaultTTL.
func TTL(ttl time.Duration) CallOption { return callOption(func(s *settings) { s.ttl = ttl }) }

// Wait sets how long Acquire waits for a lock that another client holds. After this time Acquire returns ErrHeld, or
// another error if it was waiting for a reply from Redis. Without Wait, Acquire waits until its context ends. Wait(0)
// tries once.
func Wait(most time.Duration) CallOption {
	return callOption(func(s *settings) { s.wait, s.waits = most, true })
}

// Watchdog renews the lease every third of its TTL until the lease is released or lost. A holder that hangs therefore
// keeps the lock as long as its process lives.
func Watchdog() CallOption { return callOption(func(s *settings) { s.watchdog = true }) }

// Prefix sets the text that the Locker puts before every key. The default is "lock:". All processes must use the same
// prefix.
func Prefix(prefix string) Option { return option(func(s *settings) { s.prefix = prefix }) }

// With makes the Locker call the given hooks.
func With(hooks Hooks) Option { return option(func(s *settings) { s.hooks = &hooks }) }

// newSettings returns the defaults as changed by the options of a constructor, or an error that lists every invalid
// value.
func newSettings(options []Option) (settings, error) {
	s := settings{prefix: "lock:", ttl: DefaultTTL}
	for _, o := range options {
		o.set(&s)
	}
	return s, s.problem()
}

// with returns the settings for a call with additional options, or an error that lists every invalid value.
func (s settings) with(options []CallOption) (settings, error) {
	if len(options) == 0 {
		return s, nil
	}
	call := s
	for _, o := range options {
		o.set(&call)
	}
	return call, call.problem()
}

// problem returns an error that lists every invalid value, or nil.
func (s settings) problem() error {
	problems := []error{validTTL(s.ttl)}
	if s.waits && s.wait < 0 {
		err := fmt.Errorf("Wait must be at least 0, not %v", s.wait)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// validTTL returns an error for a TTL of 0 or less, which no lock accepts. Some locks also reject short TTLs.
func validTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("TTL must be positive, not %v", ttl)
	}
	return nil
}
