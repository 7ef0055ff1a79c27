package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// delay is a hook that holds back one script until letGo is closed. It then sends the script even if the caller's
// context has ended, as a client may do after waiting for a connection.
type delay struct {
	next   chan struct{} // has a value if the next script is to be kept back
	caught chan struct{}
	letGo  chan struct{}
	sent   chan struct{} // closed once it has been answered
}

func newDelay() *delay {
	return &delay{
		next: make(chan struct{}, 1), caught: make(chan struct{}),
		letGo: make(chan struct{}), sent: make(chan struct{}),
	}
}

func (d *delay) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *delay) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *delay) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if _, is := asScript(cmd); is {
			select {
			case <-d.next:
				close(d.caught)
				<-d.letGo
				defer close(d.sent)
				ctx = context.WithoutCancel(ctx)
			default:
			}
		}
		return next(ctx, cmd)
	}
}

// late calls the function acquire, holds back its script, and cancels its context. When acquire has returned, late
// calls the function then, waits for a second, and lets Redis execute the script.
func (d *delay) late(t *testing.T, acquire func(context.Context) error, then func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // without a deadline, by which Redis could drop a waiter
	defer cancel()
	d.next <- struct{}{}
	go func() {
		<-d.caught
		cancel()
	}()
	if err := acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an acquire that was cancelled returned %v", err)
	}
	then()
	time.Sleep(time.Second)
	close(d.letGo)
	<-d.sent
}

func delayed(t *testing.T, server *redistest.Server, variant string) (trial.Process, *delay) {
	t.Helper()
	node, d := server.Node(t), newDelay()
	node.Client.AddHook(d)
	return trial.StartOn(t, []goredis.Node{node}, variant, time.Hour), d
}

// Redis executes an acquire after its caller has given up. Another client must get the lock within 10 s, so the late
// acquire may leave neither the lock nor an entry in the queue.
func TestLateAcquireIsReleased(t *testing.T) {
	t.Parallel()
	for _, variant := range family {
		for _, taken := range []bool{false, true} {
			name := variant + " free"
			if taken {
				name = variant + " taken"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				p, d := delayed(t, server, variant)
				other := trial.Start(t, server, variant, time.Hour)
				trial.Release(t, p.Acquire(t, "key")) // this loads the scripts
				var lease strategies.Lease
				if taken {
					lease = other.Acquire(t, "key")
				}
				d.late(t, func(ctx context.Context) error { _, err := p.Locker.Acquire(ctx, "key"); return err }, func() {})
				if taken {
					trial.Release(t, lease)
				}
				began := time.Now()
				trial.Release(t, other.Acquire(t, "key"))
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("the lock was free %v after an acquire had come late", took)
				}
			})
		}
	}
}

// Redis executes an owner's second acquire after that owner has released the first lease. The lock must become free
// again.
func TestLateHoldIsReleased(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"pubsub", "fair", "fenced"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			outside := server.Client(t)
			p, d := delayed(t, server, variant)
			reentrant, _ := strategies.As[strategies.Reentrant](p.Locker)
			first, err := reentrant.AcquireAs(t.Context(), "key", "owner")
			if err != nil {
				t.Fatal(err)
			}
			d.late(t, func(ctx context.Context) error {
				_, err := reentrant.AcquireAs(ctx, "key", "owner")
				return err
			}, func() { trial.Release(t, first) })
			poll.Until(t, "the lock is free", func() bool { return outside.Exists(t.Context(), "trial:key").Val() == 0 })
		})
	}
}

// Redis refuses the releases of an owner's two holds. The first release must count as done without a repetition. The
// second must be repeated, so that the lock becomes free.
func TestRefusedReleaseOfOneHold(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"pubsub", "fair", "fenced"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server, outside, p := begin(t, variant, time.Hour)
			other := trial.Start(t, server, variant, time.Hour)
			reentrant, _ := strategies.As[strategies.Reentrant](p.Locker)
			var leases []strategies.Lease
			for range 2 {
				lease, err := reentrant.AcquireAs(t.Context(), "key", "owner")
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, lease)
			}
			outside.ConfigSet(t.Context(), "min-replicas-to-write", "1")
			for _, lease := range leases {
				if err := lease.Release(t.Context()); !redis.HasErrorPrefix(err, "NOREPLICAS") {
					t.Errorf("a release returned %v", err)
				}
			}
			outside.ConfigSet(t.Context(), "min-replicas-to-write", "0")
			trial.Release(t, other.Acquire(t, "key"))
		})
	}
}
