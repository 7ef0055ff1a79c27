package check

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// lockers stores the drivers that a check opens.
type lockers struct {
	mu  sync.Mutex
	all []strategies.Locker
}

// open opens one instance of the lock. It connects a driver through proxies, so that faults also affect its
// connections.
func (l *lockers) open(ctx context.Context, v strategies.Variant, c goredis.Config) (strategies.Locker, error) {
	if !v.Info().Driver {
		return goredis.Open(v, c)
	}
	locker, err := driver.OpenThrough(ctx, v, c)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, locker)
	}
	return locker, err
}

// died returns why one of the drivers' processes ended before Close; nil if none did.
func (l *lockers) died() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one, ok := one.(interface{ Died() error }); ok && one.Died() != nil {
			return one.Died()
		}
	}
	return nil
}

// answering is the time limit for an acquire and a release of a driver on an idle server.
const answering = 20 * time.Second

// tried opens a driver and acquires and releases the lock once, on servers without faults. If that fails, the driver is
// faulty, and every check would report this as a broken promise of the lock. So tried then returns the verdict for all
// checks, and the reason; otherwise both are "". err is about the servers.
func tried(
	ctx context.Context, v strategies.Variant, checks []locktest.Check,
) (outcome locktest.Verdict, why string, err error) {
	info, needed := v.Info(), false
	for _, one := range checks {
		needed = needed || one.Inapplicable(info) == ""
	}
	if !info.Driver || !needed {
		return "", "", nil
	}
	all, err := startFleet(ctx, info.Nodes)
	if err != nil {
		return "", "", err
	}
	defer all.close(context.WithoutCancel(ctx))
	var opened lockers
	locker, err := opened.open(ctx, v, goredis.Config{
		Nodes: all.nodes(), Prefix: "check:", TTL: time.Minute, Callers: 1,
	})
	if err == nil {
		defer func() { _ = locker.Close() }()
		if p, ok := strategies.As[strategies.Preparer](locker); ok {
			err = p.Prepare(ctx, nil)
		}
	}
	if err != nil {
		return locktest.NotJudged, untrusted.Printable(fmt.Sprintf("this driver cannot be opened: %v", err)), nil
	}
	question, err := answers(ctx, locker)
	switch died := opened.died(); {
	case died != nil:
		return locktest.NotJudged, untrusted.Printable(fmt.Sprintf("its driver failed: %v", died)), nil
	case err != nil:
		why := fmt.Sprintf("this driver does not answer %s: %v", question, err)
		return locktest.NotTried, untrusted.Printable(why), nil
	}
	return "", "", nil
}

// answers sends a driver the requests that every check needs. It returns the name of the first request that fails.
func answers(ctx context.Context, locker strategies.Locker) (question string, err error) {
	limited, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	lease, err := locker.Acquire(limited, "free")
	if err != nil {
		return "acquire", err
	}
	if err := lease.Release(limited); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return "release", err
	}
	return "", nil
}
