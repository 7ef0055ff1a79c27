//go:build unix

package chaos

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// tokens is how many a grant to a process reserves.
var tokens = map[string]int64{"handoff": 1, "cohort": 1024}

// behind is a process that waits behind another's five waiters, of whatever they are.
type behind struct {
	*testing.T
	server *redis.Client
	child  *child
	lease  strategies.Lease      // that both wait for
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

// served returns how many tokens were skipped until this process's waiter got the lock.
func (b *behind) served() (strategies.Lease, int64) {
	b.Helper()
	select {
	case next := <-b.next:
		if next == nil {
			b.FailNow()
		}
		return next, token(next) - token(b.lease) - 1
	case <-time.After(time.Minute):
		b.Fatal("it is not served")
		return nil, 0
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
	for strategy := range tokens {
		b := standBehind(t, strategy, ttl)
		b.child.kill()
		if n := len(b.server.Keys(t.Context(), "trial:handoff:*").Val()); n < 2 {
			t.Fatalf("%d processes beat, so that the killed one is known to be dead", n)
		}
		var next strategies.Lease
		var skipped int64
		calls := locktest.Calls(t, b.server, func() {
			b.release()
			next, skipped = b.served()
		})
		if skipped > 0 || calls["evalsha"] != 1 {
			t.Errorf("%s: %d tokens were given to a killed process, and the next was served by %d scripts", strategy, skipped, calls["evalsha"])
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
	both := map[string]*behind{}
	for strategy := range tokens {
		b := standBehind(t, strategy, ttl)
		b.child.stop()
		b.release()
		both[strategy] = b
	}
	for strategy, b := range both {
		block := tokens[strategy]
		next, skipped := b.served()
		if skipped != block {
			t.Errorf("%s: %d tokens were given to a stopped process, want those of one grant: %d", strategy, skipped, block)
		}
		trial.Release(t, next)
	}
	for strategy, b := range both {
		b.child.signal(syscall.SIGCONT)
		said := b.child.says()
		if len(said) != 5 {
			t.Errorf("%s: the child's waiters said %q", strategy, said)
		}
		late, block := token(b.lease)+1, tokens[strategy]
		for _, line := range said {
			if token, err := strconv.ParseInt(line, 10, 64); err != nil || token < late+block {
				t.Errorf("%s: one of the child's waiters said %q; the grant that came too late had %d", strategy, line, late)
			}
		}
	}
}
