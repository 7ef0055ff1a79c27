package lock

import (
	"errors"
	"fmt"
	"time"
)

// Option is for the constructor of a lock.
type Option interface{ set(*settings) }

// CallOption is for one call. Given to the constructor it holds for all calls without that
// option.
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

// settings are the result of all options.
type settings struct {
	prefix   string
	ttl      time.Duration
	wait     time.Duration // only if waits
	waits    bool
	watchdog bool
	hooks    *Hooks // nil means none
}

// DefaultTTL is the TTL of leases without an option TTL; Redisson's is the same.
const DefaultTTL = 30 * time.Second

// TTL is how long a lease lasts unless it is extended or released: for so long nobody gets
// the lock of a dead holder. The default is DefaultTTL.
func TTL(ttl time.Duration) CallOption { return callOption(func(s *settings) { s.ttl = ttl }) }

// Wait is how long Acquire waits for a lock that another has; it then returns ErrHeld, but
// not if it is Redis that it waits for. Without it, Acquire waits until its context ends. Wait(0) tries once.
func Wait(most time.Duration) CallOption {
	return callOption(func(s *settings) { s.wait, s.waits = most, true })
}

// Watchdog renews the lease after each third of its TTL, until it is released or lost. A
// holder that hangs then keeps the lock for as long as its process lives.
func Watchdog() CallOption { return callOption(func(s *settings) { s.watchdog = true }) }

// Prefix is put before every key. The default is "lock:". All processes need the same.
func Prefix(prefix string) Option { return option(func(s *settings) { s.prefix = prefix }) }

// With sets the hooks.
func With(hooks Hooks) Option { return option(func(s *settings) { s.hooks = &hooks }) }

// newSettings returns the settings of a constructor.
func newSettings(options []Option) (settings, error) {
	s := settings{prefix: "lock:", ttl: DefaultTTL}
	for _, o := range options {
		o.set(&s)
	}
	return s, s.problem()
}

// with returns the settings of a call.
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

// problem is every error in the settings.
func (s settings) problem() error {
	problems := []error{validTTL(s.ttl)}
	if s.waits && s.wait < 0 {
		err := fmt.Errorf("Wait must not be negative, as %v is", s.wait)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// validTTL rejects a TTL that no lock can have; some need more.
func validTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("TTL must be positive, not %v", ttl)
	}
	return nil
}
