package zookeeper_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// cable is a network path to the server that a test can break.
type cable struct{ netfault.Path }

// These are the codes of requests in ZooKeeper's protocol.
const (
	creates  = 1
	deletes  = 2
	lists    = 12
	watching = 4
)

func (c *cable) through(n gozk.Node) gozk.Node {
	n.Dial = c.Dial
	return n
}

// broken closes all connections. If cut is true, it also prevents new ones.
func (c *cable) broken(cut bool) {
	c.Block(cut)
	c.HangUp()
}

// lose makes the network drop the reply to the next request with the given code. It closes lost when the reply is
// dropped.
func (c *cable) lose(code int32) (lost <-chan struct{}) {
	return c.BreakAt(netfault.LostAnswer, func(request []byte) bool {
		return len(request) >= 12 && int32(binary.BigEndian.Uint32(request[8:])) == code
	})
}

// A holder is cut off from the server for longer than its session's timeout. The channel of its lease's Lost must be
// closed, and Release must return ErrNotHeld. The client must then acquire the lock with a new session.
func TestHolderIsCutOff(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	c := new(cable)
	one, other := open(t, c.through(node(t)), ttl), open(t, node(t), ttl)
	lease := acquire(t, one, "key")
	select {
	case <-lease.(strategies.Watched).Lost():
		t.Error("heartbeats do not keep it")
	case <-time.After(2 * ttl):
	}
	c.broken(true)
	next := acquire(t, other, "key")
	select {
	case <-lease.(strategies.Watched).Lost():
	case <-time.After(drive.Bound):
		t.Error("its loss was not reported")
	}
	c.broken(false)
	release(t, lease, strategies.ErrNotHeld)
	release(t, next, nil)
	release(t, acquire(t, one, "key"), nil) // it has another session now
}

// A connection breaks and is restored within the session's timeout. The lease must remain valid, and the waiter must
// keep its position in the queue.
func TestReconnectInTime(t *testing.T) {
	t.Parallel()
	c := new(cable)
	n := c.through(node(t))
	holder, waiter, late := open(t, n, 10*time.Second), open(t, n, 10*time.Second), open(t, node(t), 10*time.Second)
	for range 5 {
		lease := acquire(t, holder, "key")
		order := make(chan string, 2)
		var all sync.WaitGroup
		wait := func(who string, on interface {
			Acquire(context.Context, string) (strategies.Lease, error)
		}, place int,
		) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
				defer cancel()
				got, err := on.Acquire(ctx, "key")
				if err != nil {
					t.Error(err)
					return
				}
				order <- who
				release(t, got, nil)
			})
			poll.Until(t, "it queues", func() bool { return queue(t, "key") == place })
		}
		wait("first", waiter, 2)
		wait("second", late, 3)
		c.broken(false)
		select {
		case <-lease.(strategies.Watched).Lost():
			t.Error("it was reported as lost")
		default:
		}
		release(t, lease, nil)
		all.Wait()
		if first := <-order; first != "first" {
			t.Errorf("the %s came first", first)
		}
	}
	if n := queue(t, "key"); n > 0 {
		t.Errorf("%d are left in the queue", n)
	}
}

// The session of a waiter ends while it is cut off. The waiter must join the queue again with a new session.
func TestWaiterIsCutOff(t *testing.T) {
	t.Parallel()
	const ttl = 500 * time.Millisecond
	c := new(cable)
	holder, waiter := open(t, node(t), ttl), open(t, c.through(node(t)), ttl)
	lease := acquire(t, holder, "key")
	got := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*drive.Bound)
	defer cancel()
	go func() {
		lease, err := waiter.Acquire(ctx, "key")
		if err == nil {
			err = lease.Release(t.Context())
		}
		got <- err
	}()
	poll.Until(t, "it queues", func() bool { return queue(t, "key") == 2 })
	c.broken(true)
	poll.Until(t, "it has lost its place", func() bool { return queue(t, "key") == 1 })
	c.broken(false)
	poll.Until(t, "it queues again", func() bool { return queue(t, "key") == 2 })
	release(t, lease, nil)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// If the reply to a request is lost, no client may have two nodes in the queue or stay in the queue permanently.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int32{"create": creates, "delete": deletes, "list": lists, "watch": watching} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := new(cable)
			holder, one := open(t, node(t), 10*time.Second), open(t, c.through(node(t)), 10*time.Second)
			release(t, acquire(t, one, "key"), nil) // its session is open
			lost := 0
			for _, cancelled := range []bool{false, true} {
				lease := acquire(t, holder, "key")
				broke := c.lose(code)
				ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
				got := make(chan error, 1)
				go func() {
					lease, err := one.Acquire(ctx, "key")
					if err == nil {
						err = lease.Release(t.Context())
					}
					got <- err
				}()
				if cancelled {
					time.Sleep(5 * time.Millisecond)
					cancel()
				} else {
					poll.Until(t, "it queues", func() bool { return queue(t, "key") == 2 })
				}
				release(t, lease, nil)
				if err := <-got; err != nil && (!cancelled || !errors.Is(err, context.Canceled)) {
					t.Errorf("cancelled %v: %v", cancelled, err)
				}
				cancel()
				poll.Until(t, "the queue is empty", func() bool { return queue(t, "key") == 0 })
				select {
				case <-broke:
					lost++
				default:
				}
			}
			if lost == 0 {
				t.Error("no answer was lost")
			}
		})
	}
}
