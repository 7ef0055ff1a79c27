//go:build unix

package chaos

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

var both = []string{"handoff", "cohort"}

// behind is a process that waits behind another's five waiters, of whatever they are.
type behind struct {
	*testing.T
	server *redis.Client
	child  *child
	lease  strategies.Lease      // that both wait for
	told   *redis.PubSub         // what the child is told
	next   chan strategies.Lease // to this process's waiter
}

func standBehind(t *testing.T, strategy string, ttl time.Duration) *behind {
	const waiters = 5
	server := redistest.Start(t)
	b := &behind{T: t, server: server.Client(t), next: make(chan strategies.Lease, 1)}
	p := trial.Start(t, server, "handoff", ttl)
	// Nobody may wait for as long as this lease would have lasted.
	holder := trial.Start(t, server, "handoff", time.Hour)
	b.lease = holder.Acquire(t, "key")
	b.child = startChild(t, childTask{strategy, server.Addr, ttl, waiters})
	entries := int64(waiters)
	if strategy == "cohort" {
		entries = 1
	}
	queued := func(n int64) func() bool {
		return func() bool { return b.server.LLen(t.Context(), "trial:key:handoff").Val() == 1+n }
	}
	trial.Eventually(t, "the child's waiters are queued", queued(entries))
	entry := b.server.LIndex(t.Context(), "trial:key:handoff", 1).Val()
	id, _, _ := strings.Cut(entry, ":")
	b.told = b.server.Subscribe(t.Context(), "trial:handoff:"+id)
	t.Cleanup(func() { _ = b.told.Close() })
	if _, err := b.told.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() {
		lease, err := p.Locker.Acquire(t.Context(), "key")
		if err != nil {
			t.Error(err)
		}
		b.next <- lease
	}()
	trial.Eventually(t, "one is queued behind them", queued(entries+1))
	return b
}

// release has the lock go on.
func (b *behind) release() {
	b.Helper()
	trial.Release(b, b.lease)
}

// served returns how often the child was told of a grant until this process's waiter got
// the lock.
func (b *behind) served() (next strategies.Lease, grants int) {
	b.Helper()
	select {
	case next = <-b.next:
		if next == nil {
			b.FailNow()
		}
	case <-time.After(time.Minute):
		b.Fatal("it is not served")
	}
	if err := b.told.Ping(b.Context()); err != nil {
		b.Fatal(err)
	}
	for {
		m, err := b.told.Receive(b.Context())
		switch m.(type) {
		case *redis.Message:
			grants++
		case *redis.Pong:
			return next, grants
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

// stop stops it, and returns when it has stopped.
func (c *child) stop() {
	c.t.Helper()
	c.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		c.t.Fatalf("it does not stop: %v, %v", status, err)
	}
}

// Waiters whose process was killed are passed over in the script that meets them.
func TestKilledWaitersDelayNobody(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Second
	for _, strategy := range both {
		b := standBehind(t, strategy, ttl)
		if err := b.told.Unsubscribe(t.Context()); err != nil { // else there would be somebody who hears
			t.Fatal(err)
		}
		b.child.kill()
		if n := len(b.server.Keys(t.Context(), "trial:handoff:*").Val()); n < 2 {
			t.Fatalf("%d processes beat, so that the killed one is known to be dead", n)
		}
		var next strategies.Lease
		calls := locktest.Calls(t, b.server, func() {
			b.release()
			next = <-b.next
		})
		beats := calls["set"] / 2
		if next == nil || calls["evalsha"]-beats != 1 {
			t.Fatalf("%s: behind a killed process the next was served by %d scripts", strategy, calls["evalsha"]-beats)
		}
		trial.Release(t, next)
	}
}

// Waiters of a process that is stopped cost one TTL in all, if that is longer than a
// heartbeat lasts. When the process goes on it does not take the grant that came too late
// for a lease, and all its waiters are served.
func TestStoppedWaitersCostOneTTL(t *testing.T) {
	t.Parallel()
	const ttl = 3500 * time.Millisecond
	stood, last := map[string]*behind{}, map[string]int64{}
	for _, strategy := range both {
		b := standBehind(t, strategy, ttl)
		b.child.stop()
		b.release()
		stood[strategy] = b
	}
	for strategy, b := range stood {
		next, grants := b.served()
		if grants != 1 {
			t.Errorf("%s: a stopped process was told of %d grants, want one", strategy, grants)
		}
		last[strategy] = token(next)
		trial.Release(t, next)
	}
	for strategy, b := range stood {
		b.child.signal(syscall.SIGCONT)
		said := b.child.says()
		if len(said) != 5 {
			t.Errorf("%s: the child's waiters said %q", strategy, said)
		}
		for _, line := range said {
			if token, err := strconv.ParseInt(line, 10, 64); err != nil || token <= last[strategy] {
				t.Errorf("%s: one of the child's waiters said %q; the grant that came too late had less than %d", strategy, line, last[strategy])
			}
		}
	}
}
