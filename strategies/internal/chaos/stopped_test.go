//go:build unix

package chaos

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

var both = []string{"handoff", "cohort"}

// waitersEach is how many wait in a child.
const waitersEach = 5

// behind is a process that waits behind another's waiters.
type behind struct {
	*testing.T
	child    *child
	lease    strategies.Lease // that both wait for
	released time.Time
	next     chan strategies.Lease // to this process's waiter
}

func standBehind(t *testing.T, strategy string, ttl time.Duration) *behind {
	t.Helper()
	server := redistest.Start(t)
	b := &behind{T: t, next: make(chan strategies.Lease, 1)}
	p := trial.Start(t, server, strategy, ttl)
	// Nobody may wait for as long as this lease would have lasted.
	b.lease = trial.Start(t, server, strategy, time.Hour).Acquire(t, "key")
	b.child = startChild(t, childTask{strategy, server.Addr, ttl, waitersEach})
	for range waitersEach {
		if line := b.child.line(); line != waiting {
			t.Fatalf("the child said %q", line)
		}
	}
	time.Sleep(300 * time.Millisecond)
	go func() {
		lease, err := p.Locker.Acquire(t.Context(), "key")
		if err != nil {
			t.Error(err)
		}
		b.next <- lease
	}()
	time.Sleep(300 * time.Millisecond)
	return b
}

// release has the lock go on.
func (b *behind) release() {
	b.Helper()
	b.released = time.Now()
	trial.Release(b, b.lease)
}

// served returns the lease of this process's waiter, and how long it took.
func (b *behind) served() (next strategies.Lease, took time.Duration) {
	b.Helper()
	select {
	case next = <-b.next:
		if next == nil {
			b.FailNow()
		}
	case <-time.After(time.Minute):
		b.Fatal("it is not served")
	}
	return next, time.Since(b.released)
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

// Waiters whose process was killed are passed over, and cost no TTL.
func TestKilledWaitersDelayNobody(t *testing.T) {
	t.Parallel()
	for _, strategy := range append(both, "handoff:linger=0s") {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			b := standBehind(t, strategy, time.Hour)
			b.child.kill()
			b.release()
			next, _ := b.served()
			trial.Release(t, next)
		})
	}
}

// Waiters of a process that is stopped cost one TTL in all. When the process goes on it
// does not take the grant that came too late for a lease, and all its waiters are served.
func TestStoppedWaitersCostOneTTL(t *testing.T) {
	t.Parallel()
	for _, strategy := range append(both, "handoff:linger=0s") {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			trial.Calm(t, func(times int) string {
				ttl := time.Duration(times) * 1500 * time.Millisecond
				b := standBehind(t, strategy, ttl)
				defer b.child.kill()
				b.child.stop()
				b.release()
				next, took := b.served()
				last := token(next)
				trial.Release(t, next)
				b.child.signal(syscall.SIGCONT)
				for range waitersEach {
					said := b.child.line()
					if token, err := strconv.ParseInt(said, 10, 64); err != nil || token <= last {
						t.Errorf("one of the child's waiters said %q; the grant that came too late had less than %d", said, last)
					}
				}
				if took > 2*ttl-100*time.Millisecond {
					return fmt.Sprintf("a stopped process cost %v, and the TTL is %v", took, ttl)
				}
				return ""
			})
		})
	}
}
