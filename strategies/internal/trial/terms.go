package trial

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Terms tests the TTLs of single calls, for variants that are strategies.Termed, written as
// on the command line. A semaphore must have one permit, which runs out.
func Terms(t *testing.T, variants ...string) {
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			for name, check := range map[string]func(*testing.T, string){
				"reach Redis":            termsReachRedis,
				"are refused":            termsAreRefused,
				"run out":                termsRunOut,
				"are not renewed":        termsAreNotRenewed,
				"shorter than before":    func(t *testing.T, variant string) { termsAreMixed(t, variant, time.Hour) },
				"shorter than the first": func(t *testing.T, variant string) { termsAreMixed(t, variant, short) },
				"over before it began":   termsOverBeforeTheyBegan,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					check(t, variant)
				})
			}
		})
	}
}

// short is a TTL that a test outlives. If a lock ignores it, the test waits for an hour.
const short = 300 * time.Millisecond

// termed is a strategy with its servers.
type termed struct {
	Process
	strategies.Termed
	outside []*redis.Client
}

func startTermed(t *testing.T, variant string, ttl time.Duration) termed {
	t.Helper()
	var nodes []goredis.Node
	var outside []*redis.Client
	for range Variant(t, variant).Info().Nodes {
		server := redistest.Start(t)
		nodes = append(nodes, server.Node(t))
		outside = append(outside, server.Client(t))
	}
	p := StartOn(t, nodes, variant, ttl)
	return termed{p, p.Locker.(strategies.Termed), outside}
}

// acquireFor must succeed.
func (p termed) acquireFor(t *testing.T, key string, ttl time.Duration) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := p.AcquireFor(ctx, key, ttl)
	if err != nil {
		t.Fatalf("acquire for %v: %v", ttl, err)
	}
	return lease
}

// left returns how long a server keeps the lock "key", or a semaphore's first permit;
// negative if it does not.
func left(t *testing.T, outside *redis.Client) time.Duration {
	t.Helper()
	permits, err := outside.ZRangeWithScores(t.Context(), "{trial:key}:timeout", 0, 0).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(permits) > 0 {
		return time.Until(time.UnixMilli(int64(permits[0].Score)))
	}
	return outside.PTTL(t.Context(), "trial:key").Val()
}

func termsReachRedis(t *testing.T, variant string) {
	p := startTermed(t, variant, time.Hour)
	for name, test := range map[string]struct {
		ttl     time.Duration
		acquire func(context.Context) (strategies.Lease, error)
	}{
		"Acquire":       {time.Hour, func(ctx context.Context) (strategies.Lease, error) { return p.Locker.Acquire(ctx, "key") }},
		"AcquireFor":    {10 * time.Minute, func(ctx context.Context) (strategies.Lease, error) { return p.AcquireFor(ctx, "key", 10*time.Minute) }},
		"TryAcquireFor": {20 * time.Hour, func(ctx context.Context) (strategies.Lease, error) { return p.TryAcquireFor(ctx, "key", 20*time.Hour) }},
	} {
		before := time.Now()
		lease, err := test.acquire(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		after := time.Now()
		until := lease.(strategies.Timed).ValidUntil()
		if least := before.Add(test.ttl - test.ttl/50); until.Before(least) || until.After(after.Add(test.ttl)) {
			t.Errorf("%s for %v: it is valid for %v", name, test.ttl, until.Sub(before))
		}
		for _, outside := range p.outside {
			asked := time.Now()
			kept := left(t, outside)
			if least := test.ttl - time.Since(before) - 10*time.Millisecond; kept < least || kept > test.ttl {
				t.Errorf("%s for %v: Redis keeps it for %v", name, test.ttl, kept)
			}
			if until.After(time.Now().Add(kept + time.Millisecond)) {
				t.Errorf("%s for %v: it is valid for %v, and Redis keeps it for %v", name, test.ttl, until.Sub(asked), kept)
			}
		}
		Release(t, lease)
	}
}

// A TTL that is too short is refused before anything is sent. (In go-redis a TTL of -1 keeps
// that of the key, and 0 means none.)
func termsAreRefused(t *testing.T, variant string) {
	var nodes []goredis.Node
	for range Variant(t, variant).Info().Nodes {
		nodes = append(nodes, redistest.Start(t).Node(t))
	}
	p, err := goredis.Open(Variant(t, variant), configOn(nodes))
	if err != nil {
		t.Fatal(err)
	}
	for _, ttl := range []time.Duration{-1, 0, time.Microsecond, time.Millisecond - 1} {
		if lease, err := p.(strategies.Termed).AcquireFor(t.Context(), "key", ttl); err == nil || lease != nil {
			t.Errorf("acquire for %v returned %v, %v", ttl, lease, err)
		}
		if lease, err := p.(strategies.Termed).TryAcquireFor(t.Context(), "key", ttl); err == nil || lease != nil {
			t.Errorf("try to acquire for %v returned %v, %v", ttl, lease, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, node := range nodes {
		if stats := node.Client.PoolStats(); stats.Hits+stats.Misses > 0 {
			t.Errorf("something was sent: %+v", stats)
		}
	}
}

// A lease ends after its own TTL, whatever the Locker's, and then nobody holds it.
func termsRunOut(t *testing.T, variant string) {
	p := startTermed(t, variant, time.Hour)
	dead := p.acquireFor(t, "key", short)
	lost := func(when string) {
		t.Helper()
		if err := dead.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("release %s returned %v, want ErrNotHeld", when, err)
		}
		if err := dead.(strategies.Extender).Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("extend %s returned %v, want ErrNotHeld", when, err)
		}
	}
	next := p.Acquire(t, "key")
	if early := time.Until(dead.(strategies.Timed).ValidUntil()); early > 0 {
		t.Errorf("it was granted again %v before it ran out", early)
	}
	lost("after somebody else has the lock")
	if _, err := p.TryAcquireFor(t.Context(), "key", time.Hour); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try returned %v, want ErrHeld", err)
	}
	Release(t, next)

	dead = p.acquireFor(t, "key", short)
	for _, outside := range p.outside {
		poll.Until(t, "it has run out", func() bool { return left(t, outside) < 0 })
	}
	lost("after it has run out")
}

// A watchdog renews what Acquire gives, but not a lease with a TTL of its own.
func termsAreNotRenewed(t *testing.T, variant string) {
	if !Variant(t, variant).Info().Claims.Watchdog {
		t.Skip("it has no watchdog")
	}
	Calm(t, func(times int) string {
		ttl := time.Duration(times) * short
		p := startTermed(t, variant, ttl)
		renewed := p.Acquire(t, "renewed")
		lost := renewed.(strategies.Watched).Lost()
		p.acquireFor(t, "key", 2*ttl)
		tried, err := p.TryAcquireFor(t.Context(), "tried", 2*ttl)
		if err != nil {
			return "its answer came too late: " + err.Error()
		}
		if err := tried.(strategies.Extender).Extend(t.Context(), ttl); err != nil {
			return "it ran out before it was extended: " + err.Error()
		}
		poll.Until(t, "both run out", func() bool {
			return p.outside[0].Exists(t.Context(), "trial:key", "trial:tried").Val() == 0
		})
		select {
		case <-lost:
			return "the watchdog came too late"
		default:
			Release(t, renewed)
			return ""
		}
	})
}

// Two callers wait for a holder whose lease would last for an hour. The first gets a short
// lease and dies with it. Nobody tells the second, which expects an hour.
func termsAreMixed(t *testing.T, variant string, ttl time.Duration) {
	for _, processes := range []int{1, 2} {
		var p []termed
		first := startTermed(t, variant, ttl)
		p = append(p, first)
		for len(p) < processes {
			another := StartOn(t, first.Config.Nodes, variant, ttl)
			p = append(p, termed{another, another.Locker.(strategies.Termed), first.outside})
		}
		second := p[processes-1]
		leases := make(chan strategies.Lease, 2)
		wait := func(p termed, ttl time.Duration) {
			before := p.Counts().Attempts
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				lease, err := p.AcquireFor(ctx, "key", ttl)
				if err != nil {
					t.Errorf("with %d processes: a waiter for %v got: %v", processes, ttl, err)
				}
				leases <- lease
			}()
			poll.Until(t, "it waits", func() bool { return p.Counts().Attempts-before >= 2 })
		}
		holder := first.acquireFor(t, "key", time.Hour)
		wait(first, short)
		wait(second, time.Minute)
		Release(t, holder)
		for range 2 {
			if lease := <-leases; lease != nil && time.Until(lease.(strategies.Timed).ValidUntil()) > short {
				Release(t, lease)
			}
		}
	}
}

// granting returns how many scripts and SETs a server has run so far.
func granting(t *testing.T, outside *redis.Client) int64 {
	calls := replies.ParseInfo(outside.Info(t.Context(), "commandstats").Val()).Calls()
	return calls["evalsha"] + calls["set"]
}

// Redis grants a lock, but its answer comes after the lease has run out.
func termsOverBeforeTheyBegan(t *testing.T, variant string) {
	if Variant(t, variant).Info().Nodes > 1 {
		t.Skip("it waits for an answer no longer than a lease lasts")
	}
	const ttl = 20 * time.Millisecond
	server := redistest.Start(t)
	path, node := new(Path), server.Node(t)
	options := *node.Options
	options.Dialer = path.Dial
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	p := StartOn(t, []goredis.Node{{Client: client, Options: &options}}, variant, time.Hour)
	Release(t, p.Acquire(t, "key")) // opens the pool's connection
	outside := server.Client(t)
	for name, acquire := range map[string]func(context.Context, string, time.Duration) (strategies.Lease, error){
		"AcquireFor":    p.Locker.(strategies.Termed).AcquireFor,
		"TryAcquireFor": p.Locker.(strategies.Termed).TryAcquireFor,
	} {
		before := granting(t, outside)
		path.Stall(true)
		var lease strategies.Lease
		var err error
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			lease, err = acquire(ctx, "key", ttl)
		}()
		poll.Until(t, "Redis has been asked", func() bool { return granting(t, outside) != before })
		time.Sleep(2 * ttl)
		stalled := time.Now()
		path.Stall(false)
		<-answered
		switch {
		case name == "TryAcquireFor":
			if !errors.Is(err, validity.ErrLate) {
				t.Errorf("%s returned %v, %v, want ErrLate", name, lease, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if since := lease.(strategies.Timed).ValidUntil().Add(time.Millisecond - ttl); since.Before(stalled) {
				t.Errorf("%s gave out a lease that had run out: it is older by %v than the answer", name, stalled.Sub(since))
			}
			_ = lease.Release(t.Context()) // it may have run out by now
		}
	}
}
