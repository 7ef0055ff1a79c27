package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// fewConnections is more than two processes need in two seconds, and far less than processes open that reconnect
// after each error.
const fewConnections = 60

// fault is a state of the server, from begin to end, in which a lock does not work.
type fault struct {
	begin, end []string // commands
	args       []string // of the server
	// partly is true if the lock may still be acquired while no other client wants it.
	partly bool
}

// setting is a fault by the server's configuration.
func setting(name, faulty, usual string) fault {
	set := "CONFIG SET " + name + " "
	return fault{begin: []string{set + faulty}, end: []string{set + usual}}
}

// without is a fault of the default user's rights.
func without(right, granted string, partly bool) fault {
	const user = "ACL SETUSER default "
	return fault{begin: []string{user + right}, end: []string{user + granted}, partly: partly}
}

var faults = map[string]fault{
	"OOM":        setting("maxmemory", "1", "0"),
	"NOREPLICAS": setting("min-replicas-to-write", "1", "0"),
	"MISCONF":    {args: []string{"--save", "3600 1"}, end: []string{"CONFIG SET stop-writes-on-bgsave-error no"}},
	"READONLY":   {begin: []string{"REPLICAOF 127.0.0.1 1"}, end: []string{"REPLICAOF NO ONE"}},
	"MASTERDOWN": {
		begin: []string{"CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"},
		end:   []string{"REPLICAOF NO ONE"},
	},
	"no keys":     without("resetkeys", "allkeys", false),
	"no channels": without("resetchannels", "allchannels", true),
	"no pubsub":   without("-@pubsub", "+@pubsub", true),
	"no scripts":  without("-@scripting", "+@scripting", true),
	"no lists":    without("-@list", "+@list", true),
}

// start makes a server refuse commands by the fault.
func (f fault) start(t *testing.T, name string, server *redis.Client) {
	t.Helper()
	for _, command := range f.begin {
		do(t, server, command)
	}
	if name == "MISCONF" { // snapshots fail
		if err := os.RemoveAll(server.ConfigGet(t.Context(), "dir").Val()["dir"]); err != nil {
			t.Fatal(err)
		}
		_ = server.BgSave(t.Context()).Err()
	}
	if !f.partly {
		refused := func() bool { return server.Set(t.Context(), "refused", 1, 0).Err() != nil }
		poll.Until(t, "writes are refused", refused)
	}
}

// While a server refuses commands that the lock needs, no client gets the lock unless it was released, and waiters do
// not reconnect repeatedly. When the cause ends, the fault ends too, also for a process without other activity: all
// waiters get the lock, and each process can acquire it and pass it on.
func TestFaultEndsWithItsCause(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			each(t, both, func(t *testing.T, variant string) {
				server := redistest.Start(t, fault.args...)
				q := newQueue(t, server)
				q.insist = true
				process := func() trial.Process { return new(wire).open(t, server, variant, time.Hour) }
				holder, waiter := process(), process()
				lease := acquire(t, holder)
				q.join("waiter", waiter)
				alone := acquireKey(t, holder, "alone")
				fault.start(t, name, q.server)
				disconnect(t, q.server)
				before := info(t, q.server, "stats", "total_connections_received")
				time.Sleep(1500 * time.Millisecond)
				if n := info(t, q.server, "stats", "total_connections_received") - before; n > fewConnections {
					t.Errorf("two processes, of which one waits, made %d connections", n)
				}
				after := process()
				granted := struggle(t, "another", holder, after)
				if len(granted) > 0 && !fault.partly {
					t.Error("a lock was granted in spite of the fault")
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				err, uncontended := lease.Release(ctx), alone.Release(ctx)
				cancel()
				if name == "OOM" && (err != nil || uncontended != nil) {
					t.Errorf("without memory the releases returned %v, %v", err, uncontended)
				}
				if err != nil && len(q.served) > 0 {
					t.Errorf("the waiter got the lock although the release was refused: %v", err)
				}
				for _, command := range fault.end {
					q.do(command)
				}
				released(t, lease)
				released(t, alone)
				released(t, q.next("waiter"))
				for _, lease := range granted {
					released(t, lease)
				}
				alive(t, q, holder, waiter, after)
			})
		})
	}
}

// struggle makes each process request a lock repeatedly for a while, and returns the granted leases.
func struggle(t *testing.T, key string, processes ...trial.Process) (leases []*holding) {
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, p := range processes {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
			lease, err := p.Locker.Acquire(ctx, key)
			if held, err := enter(t, p, "who tried", key, lease, err); err == nil {
				leases = append(leases, held)
			}
			cancel()
		}
	}
	return leases
}

// alive expects that each process can acquire the lock, and that the others wait for it and get it.
func alive(t *testing.T, q *queue, processes ...trial.Process) {
	t.Helper()
	for n, p := range processes {
		q.come(fmt.Sprint("first ", n), p)
		lease := q.next(fmt.Sprint("first ", n))
		for m, other := range processes {
			q.join(fmt.Sprint("then ", m), other)
		}
		q.drain(lease, len(processes))
	}
}

// Acquires, waits for any of many keys and extensions return the error of an outage; waiters find it by a check. A
// context of 10 ms ends a call within much less than a second, also in a process without connections. The calls leave
// nothing behind, and no lock stays taken without a holder.
func TestAnOutageIsTold(t *testing.T) {
	const keys = 300
	const limit = 4 * time.Second // enough for a machine that stands still
	onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
		h, p := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		cold := new(wire).open(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease, own := acquire(t, h), acquireKey(t, h, "own")
		leases := []*holding{lease, own}
		q.join("waiter", p)
		for n := range keys - 1 {
			key := fmt.Sprint("key ", n)
			leases = append(leases, acquireKey(t, h, key))
			q.comeFor(key, "another", p, p.Config.TTL)
		}
		poll.Until(t, "all wait", func() bool {
			return handoff.Lines(locker(p)) == keys && q.server.DBSize(t.Context()).Val() == 2*keys+1
		})
		told := map[string]func(context.Context) error{
			"extend":  func(ctx context.Context) error { return lease.Extend(ctx, 2*time.Hour) },
			"release": own.Release, // which may be repeated
		}
		for which, p := range map[string]trial.Process{"": p, " of a process without connections": cold} {
			told["acquire"+which] = func(ctx context.Context) error {
				_, err := p.Locker.Acquire(ctx, "free")
				return err
			}
			told["try"+which] = func(ctx context.Context) error {
				_, err := locker(p).TryAcquire(ctx, "another")
				return err
			}
		}
		server.Pause()
		var all sync.WaitGroup
		for what, do := range told {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				began := time.Now()
				if err := do(ctx); err == nil || time.Since(began) > limit {
					t.Errorf("%s with a context of 10 ms returned %v after %v", what, err, time.Since(began))
				}
			})
		}
		all.Wait()
		for n := range keys {
			told[fmt.Sprint("wait ", n)] = func(context.Context) error { return (<-q.served).err }
		}
		for what, do := range told {
			all.Go(func() {
				err := do(context.Background())
				if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, strategies.ErrHeld) {
					t.Errorf("%s: while Redis does not answer: %v", what, err)
				}
			})
		}
		all.Wait()
		server.Resume()
		for _, lease := range leases {
			released(t, lease)
		}
		q.nothingLeft(p, h, cold)
	})
}

// A server that cannot run a script even by its source refuses a release at once. Only the pending release is sent
// again.
func TestScriptThatIsNeverKnown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	// The wire replaces EVAL by EVALSHA, so that Redis takes the source of a script for a hash.
	instead := map[string]string{string(command("eval")): string(command("evalsha"))}
	w := &wire{instead: instead, replaced: map[string]int{}}
	lease := acquire(t, w.open(t, server, "handoff", time.Hour)) // without a script
	if err := lease.Release(t.Context()); err == nil || !strings.Contains(err.Error(), "NOSCRIPT") {
		t.Errorf("a release by a script that is never known returned %v", err)
	}
	if hash, source := w.times(script("release")), w.times([]byte(handoff.ReleaseSource)); hash != 1 || source != 1 {
		t.Errorf("the release was sent %d times by its hash and %d times by its source, want once each", hash, source)
	}
}

// A late command may queue a slot that a check has not found, and another check may find it to be the owner, before the
// first one replaces it. The process must not release the lease that the slot has got; a slot without a lease must be
// released, because the late command may still come. An hour of chaos found two holders of one lock this way.
func TestASlotThatGotTheLockIsNotReleased(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, granted := range []bool{true, false} {
		p := new(wire).start(t, server, "handoff", time.Hour)
		if released := handoff.ReplaceGranted(locker(p), fmt.Sprint("granted ", granted), granted); released == granted {
			t.Errorf("granted %v, released %v", granted, released)
		}
	}
}
