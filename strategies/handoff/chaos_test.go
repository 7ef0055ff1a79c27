package handoff_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

const (
	chaosTTL       = 500 * time.Millisecond
	chaosProcesses = 3
	chaosClients   = 4 // of each process
	chaosKeys      = 2
	// slot is how long the clients use one set of keys. It is short, because a long history of a key takes too long to
	// judge. Keys whose names begin with "long" are used for longSlot, so that the test can also find a lock that stays
	// free for longer than longestWait while a client waits.
	slot, longSlot = time.Second, 2 * longestWait
	// fewest is the smallest number of leases with which a long run passes. A run with fewer leases has tested too little.
	fewest = 100
	// longestRound limits the length of a history, because each history is kept in memory. A long run consists of several
	// rounds, each of which is judged at its end.
	longestRound = time.Minute
)

// TestChaos injects faults while clients use handoff and cohort, for four seconds or for the duration in
// LOCKBENCH_CHAOS. Each history must be one that a correct lock allows, and no client may be stuck. If LOCKBENCH_CHAOS
// is set, a cluster is among the deployments. Only a long run can find waits that are too long, because four seconds
// are shorter than the longest allowed wait.
func TestChaos(t *testing.T) {
	length, soak := 4*time.Second, os.Getenv("LOCKBENCH_CHAOS")
	if soak != "" {
		var err error
		if length, err = time.ParseDuration(soak); err != nil {
			t.Fatalf("LOCKBENCH_CHAOS must be a duration: %v", err)
		}
	}
	t.Parallel()
	var total []*deploymentCounts
	var all sync.WaitGroup
	for _, name := range both {
		open := func(c goredis.Config) (strategies.Locker, error) { return goredis.Open(trial.Variant(t, name), c) }
		deployments := []*deployment{settable(t), failingOver(t)}
		if soak != "" {
			deployments = append(deployments, movingSlots(t))
		}
		for _, d := range deployments {
			sum := &deploymentCounts{name: name + ", " + d.name, faults: map[string]int{}}
			total = append(total, sum)
			all.Go(func() {
				for end := time.Now().Add(length); time.Now().Before(end) && sum.sound(); {
					c := newChaos(t, d, open)
					c.play(min(time.Until(end), longestRound))
					sum.add(c.judge(""))
				}
			})
		}
	}
	all.Wait()
	for _, sum := range total {
		t.Log(sum)
		if !sum.sound() {
			t.Errorf("%s: %d clients stuck, %q", sum.name, sum.stuck, sum.impossible)
		}
		if sum.leases < fewest && soak != "" {
			t.Errorf("%s: only %d leases", sum.name, sum.leases)
		}
	}
}

// chaos is one round of the test on one deployment: the history of the clients, and the faults that were injected.
type chaos struct {
	*testing.T
	*deployment
	open    func(goredis.Config) (strategies.Locker, error)
	history *locktest.History
	began   time.Time
	inside  atomic.Int32   // clients that have not returned
	later   sync.WaitGroup // packets in transit

	mu     sync.Mutex
	gone   []span         // when Redis lost its data, or leases ended, in order
	back   []span         // when its clock was set back
	down   []span         // when Redis did not answer, or the machine stood still
	faults map[string]int // by kind
}

func newChaos(t *testing.T, d *deployment, open func(goredis.Config) (strategies.Locker, error)) *chaos {
	return &chaos{
		T: t, deployment: d, open: open, history: locktest.NewHistory(), began: time.Now(),
		faults: map[string]int{},
	}
}

// span is a period in which a fault had an effect. Its bounds are durations since the beginning of the history.
type span struct{ from, to time.Duration }

// instance is one simulated process with its clients. When the process dies, it releases none of its leases.
type instance struct {
	locker    strategies.Locker
	impatient bool            // its clients wait at most 50 ms
	ctx       context.Context // of its clients
	die       context.CancelFunc
	all       sync.WaitGroup
}

// play injects faults into processes whose clients acquire and release locks. After the duration length, it ends the
// contexts of the clients, and waits for at most comeBack until all clients have returned.
func (c *chaos) play(length time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var all, trouble sync.WaitGroup
	for n := range chaosProcesses {
		all.Go(func() {
			for ctx.Err() == nil {
				c.live(ctx, n)
			}
		})
	}
	trouble.Go(func() { c.trouble(ctx) })
	trouble.Go(func() { c.watch(ctx) })
	trouble.Wait()
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(comeBack):
	}
}

// comeBack is how long play waits for the clients to return after their contexts have ended. A client that has not
// returned by then is stuck.
const comeBack = 20 * time.Second

// live runs one process until it dies. Leases that its clients hold at that time are not released.
func (c *chaos) live(ctx context.Context, number int) {
	options := c.options(number)
	client := redis.NewUniversalClient(options)
	defer func() { _ = client.Close() }()
	locker, err := c.open(goredis.Config{
		Nodes:  []goredis.Node{{Client: client, Options: options}},
		Prefix: "chaos:", TTL: chaosTTL,
	})
	if err != nil {
		c.Error(err)
		return
	}
	p := &instance{locker: locker, impatient: rand.IntN(3) == 0}
	if p.impatient {
		c.count("process of impatient callers")
	}
	p.ctx, p.die = context.WithTimeout(ctx, time.Second+rand.N(8*time.Second))
	defer p.die()
	for n := range chaosClients {
		p.all.Go(func() { c.client(p, number*chaosClients+n) })
	}
	p.all.Wait()
	if err := locker.Close(); err != nil {
		c.Error(err)
	}
}

// mixed is a Locker that requests half the TTL in half of the calls of Acquire.
type mixed struct{ strategies.Locker }

func (m mixed) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if termed, ok := m.Locker.(strategies.Termed); ok && rand.IntN(2) == 0 {
		return termed.AcquireFor(ctx, key, chaosTTL/2)
	}
	return m.Locker.Acquire(ctx, key)
}

// client is one client of process p. It acquires and releases locks until p dies.
func (c *chaos) client(p *instance, number int) {
	c.inside.Add(1)
	defer c.inside.Add(-1)
	locker := c.history.Watch(number, mixed{p.locker})
	for p.ctx.Err() == nil {
		time.Sleep(rand.N(8 * time.Millisecond))
		// The hash tag contains only the random number. In a cluster all keys with the same number are therefore in one hash
		// slot, which the test may move to another node.
		key := fmt.Sprintf("%d-{%d}", int(time.Since(c.began)/slot), rand.IntN(chaosKeys))
		if rand.IntN(8) == 0 {
			key = fmt.Sprintf("long-%d-{0}", int(time.Since(c.began)/longSlot))
		}
		ctx, cancel := p.ctx, func() {}
		if p.impatient || rand.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Millisecond+rand.N(50*time.Millisecond))
		}
		lease, err := locker.Acquire(ctx, key)
		cancel()
		if err != nil {
			continue
		}
		if extender, ok := strategies.As[strategies.Extender](lease); ok && rand.IntN(8) == 0 {
			_ = extender.Extend(p.ctx, chaosTTL/2+rand.N(chaosTTL))
		}
		hold := rand.N(2 * time.Millisecond)
		switch n := rand.IntN(200); {
		case n == 0: // holds longer than the TTL
			hold = 2 * chaosTTL
		case n < 20: // for as long as Redis takes to restart
			hold = rand.N(chaosTTL / 5)
		}
		select {
		case <-time.After(hold):
		case <-p.ctx.Done():
			return // and never release
		}
		settle, done := context.WithTimeout(context.Background(), 5*time.Second)
		_ = lease.Release(settle)
		done()
	}
}

func (c *chaos) count(fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[fault]++
}

// during calls the function do, and appends the period of the call to list.
func (c *chaos) during(list *[]span, do func()) {
	from := time.Since(c.began)
	do()
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, span{from, time.Since(c.began)})
}

// merged sorts the spans by their beginning and joins overlapping ones.
func merged(all []span) (apart []span) {
	slices.SortFunc(all, func(a, b span) int { return int(a.from - b.from) })
	for _, o := range all {
		if last := len(apart) - 1; last >= 0 && o.from <= apart[last].to {
			apart[last].to = max(apart[last].to, o.to)
		} else {
			apart = append(apart, o)
		}
	}
	return apart
}
