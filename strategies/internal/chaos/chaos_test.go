package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/cohort"
	_ "github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

const (
	ttl       = 500 * time.Millisecond
	processes = 3
	clients   = 4 // of each process
	keys      = 2
	// slot is how long the clients stay with a set of keys, so that histories stay short.
	slot = time.Second
	// fewest acquisitions are worth a verdict.
	fewest = 100
)

// TestChaos takes four seconds, both locks at the same time, or as long as LOCKBENCH_CHAOS says.
func TestChaos(t *testing.T) {
	length, soak := 4*time.Second, os.Getenv("LOCKBENCH_CHAOS")
	if soak != "" {
		var err error
		if length, err = time.ParseDuration(soak); err != nil {
			t.Fatalf("LOCKBENCH_CHAOS is how long to go on: %v", err)
		}
	}
	t.Parallel()
	var both []*chaos
	var all sync.WaitGroup
	for _, name := range []string{"handoff", "cohort"} {
		c := &chaos{
			T: t, name: name, server: redistest.Start(t), history: locktest.NewHistory(), began: time.Now(), did: map[string]int{},
		}
		all.Go(func() {
			for end := time.Now().Add(time.Minute); ; { // a slow machine needs longer
				if c.play(length); c.acquired() >= fewest || time.Now().After(end) {
					return
				}
			}
		})
		both = append(both, c)
	}
	all.Wait()
	for _, c := range both {
		c.judge(soak != "")
	}
}

// chaos is one lock's time in it.
type chaos struct {
	*testing.T
	name    string
	server  *redistest.Server
	history *locktest.History
	began   time.Time

	mu   sync.Mutex
	gone []outage       // when Redis lost its data, in order
	down []outage       // when it did not answer, or the machine stood still
	did  map[string]int // troubles, and errors
}

// outage is counted from when the history began.
type outage struct{ from, to time.Duration }

// process is one instance, until it dies.
type process struct {
	locker strategies.Locker
	ctx    context.Context // of its clients
	die    context.CancelFunc
	all    sync.WaitGroup
}

// play has processes come and go, and their clients lock, until the time is over.
func (c *chaos) play(length time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var all sync.WaitGroup
	for n := range processes {
		all.Go(func() {
			for ctx.Err() == nil {
				c.live(ctx, n)
			}
		})
	}
	all.Go(func() { c.trouble(ctx) })
	all.Go(func() { c.watch(ctx) })
	all.Wait()
}

// acquired counts the acquisitions so far.
func (c *chaos) acquired() (n int) {
	for _, o := range c.history.Operations() {
		if o.Event == locktest.Acquired {
			n++
		}
	}
	return n
}

// live is one process's life, at the end of which its leases stay behind.
func (c *chaos) live(ctx context.Context, number int) {
	options := &redis.UniversalOptions{Addrs: []string{c.server.Addr}} // and go-redis's defaults
	client := redis.NewUniversalClient(options)
	defer func() { _ = client.Close() }()
	locker, err := trial.Variant(c.T, c.name).Open(strategies.Config{
		Nodes:  []strategies.Node{{Client: client, Options: options}},
		Prefix: "chaos:", TTL: ttl,
	})
	if err != nil {
		c.Error(err)
		return
	}
	p := &process{locker: locker}
	p.ctx, p.die = context.WithTimeout(ctx, time.Second+rand.N(8*time.Second))
	defer p.die()
	for n := range clients {
		p.all.Go(func() { c.client(p, number*clients+n) })
	}
	p.all.Wait()
	if err := locker.Close(); err != nil {
		c.Error(err)
	}
}

// client locks until its process dies.
func (c *chaos) client(p *process, number int) {
	locker := c.history.Watch(number, p.locker)
	for p.ctx.Err() == nil {
		time.Sleep(rand.N(8 * time.Millisecond))
		key := fmt.Sprint(int(time.Since(c.began)/slot), "-", rand.IntN(keys))
		ctx, cancel := p.ctx, func() {}
		if rand.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		}
		lease, err := locker.Acquire(ctx, key)
		cancel()
		if err != nil {
			c.note(err)
			continue
		}
		hold := rand.N(2 * time.Millisecond)
		switch n := rand.IntN(200); {
		case n == 0: // longer than it may
			hold = 2 * ttl
		case n < 20: // for as long as Redis takes to restart
			hold = rand.N(ttl / 5)
		}
		select {
		case <-time.After(hold):
		case <-p.ctx.Done():
			return // and never release
		}
		settle, done := context.WithTimeout(context.Background(), 5*time.Second)
		if err := lease.Release(settle); err != nil {
			c.note(err)
		}
		done()
	}
}

// note counts errors that are not a context's.
func (c *chaos) note(err error) {
	switch {
	case errors.Is(err, strategies.ErrNotHeld):
		err = strategies.ErrNotHeld
	case strings.Contains(err.Error(), "NOREPLICAS"):
		err = errors.New("NOREPLICAS")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return
	}
	c.count("error: " + err.Error())
}

func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did[what]++
}
