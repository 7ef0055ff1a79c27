package strategies_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

type (
	plainLease  struct{}
	timedLease  struct{ plainLease }
	fencedLease struct{ plainLease }
	// wrappedLease has a fencing token and, through Unwrap, the capabilities of the lease that it wraps.
	wrappedLease struct {
		strategies.Lease
		token int64
	}
	plainLocker   struct{}
	readyLocker   struct{ plainLocker }
	wrappedLocker struct{ strategies.Locker }
)

func (plainLease) Release(context.Context) error { return nil }
func (timedLease) ValidUntil() time.Time         { return time.Unix(7, 0) }
func (fencedLease) FencingToken() int64          { return 7 }
func (w wrappedLease) FencingToken() int64       { return w.token }
func (w wrappedLease) Unwrap() strategies.Lease  { return w.Lease }

func (plainLocker) Acquire(context.Context, string) (strategies.Lease, error) {
	return plainLease{}, nil
}
func (plainLocker) Close() error                            { return nil }
func (readyLocker) Prepare(context.Context, []string) error { return nil }
func (w wrappedLocker) Unwrap() strategies.Locker           { return w.Locker }

func TestAsFindsCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		lease strategies.Lease
		timed bool
	}{
		"its own":                 {timedLease{}, true},
		"none":                    {fencedLease{}, false},
		"of the wrapped lease":    {wrappedLease{Lease: timedLease{}}, true},
		"two wrappers deep":       {wrappedLease{Lease: wrappedLease{Lease: timedLease{}}}, true},
		"not of the wrapped one":  {wrappedLease{Lease: fencedLease{}}, false},
		"of nothing":              {nil, false},
		"of a wrapper of nothing": {wrappedLease{}, false},
	} {
		timed, ok := strategies.As[strategies.Timed](test.lease)
		if ok != test.timed || ok != (timed != nil) {
			t.Errorf("%s: found %v, %v", name, timed, ok)
		}
		if ok && !timed.ValidUntil().Equal(time.Unix(7, 0)) {
			t.Errorf("%s: As found the capability of another lease", name)
		}
	}
}

// If both a wrapper and the wrapped lease have a capability, As must return that of the wrapper.
func TestAsPrefersTheOutermost(t *testing.T) {
	fenced, ok := strategies.As[strategies.Fenced](wrappedLease{Lease: wrappedLease{fencedLease{}, 8}, token: 9})
	if !ok || fenced.FencingToken() != 9 {
		t.Errorf("As found %v, %v; want the token 9", fenced, ok)
	}
}

func TestAsFindsLockersCapabilities(t *testing.T) {
	if _, ok := strategies.As[strategies.Preparer](wrappedLocker{wrappedLocker{readyLocker{}}}); !ok {
		t.Error("As did not find the Preparer inside the wrapper")
	}
	if _, ok := strategies.As[strategies.Preparer](wrappedLocker{plainLocker{}}); ok {
		t.Error("As found a Preparer where there is none")
	}
}

// As must not allocate, because a run calls it for every lease.
func TestAsDoesNotAllocate(t *testing.T) {
	own, wrapped, none := strategies.Lease(&timedLease{}), strategies.Lease(&wrappedLease{Lease: &timedLease{}}),
		strategies.Lease(&plainLease{})
	for name, lease := range map[string]strategies.Lease{"its own": own, "wrapped": wrapped, "none": none} {
		if n := testing.AllocsPerRun(100, func() { strategies.As[strategies.Timed](lease) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
