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

// lockers stores the drivers that a check opens, so that died can find a driver whose process ended.
type lockers struct {
	mu  sync.Mutex
	all []strategies.Locker
}

// open opens one instance of the lock. A driver connects through proxies, so that faults also affect the driver's
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

// died returns the reason why the process of a driver ended before Close; nil if no process has ended.
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

// answering is the time limit within which a driver must acquire and release a lock on an idle server.
const answering = 20 * time.Second

// tried opens a driver on servers without faults, and acquires and releases the lock once. If one of these steps fails,
// the driver is faulty, and every check would blame the lock. tried then returns a verdict that applies to all checks,
// and the reason. If all steps succeed, both are "". tried returns an error only if the servers cannot be started.
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
		why := fmt.Sprintf("this driver cannot %s on an idle server: %v", question, err)
		return locktest.NotTried, untrusted.Printable(why), nil
	}
	return "", "", nil
}

// answers sends a driver the two requests that every check needs, acquire and release. It returns the name and the
// error of the first request that fails.
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
