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

// fewConnections limits how many connections two processes may open in 1.5 s. Processes that reconnect after each error
// without a pause would open far more.
const fewConnections = 60

// fault is a state in which the server refuses commands that the lock needs. The commands in begin cause the fault, and
// the commands in end remove it.
type fault struct {
	begin, end []string // commands
	args       []string // of the server
	// partly is true if clients can still acquire a lock for which no other client waits.
	partly bool
}

// setting returns the fault that begins when the server's configuration parameter name is set to faulty, and ends when
// it is set to usual.
func setting(name, faulty, usual string) fault {
	set := "CONFIG SET " + name + " "
	return fault{begin: []string{set + faulty}, end: []string{set + usual}}
}

// without returns a fault in which the default user lacks a right. The ACL rule right takes it away, and granted gives
// it back.
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

// start causes the fault, which has the given name in faults. Unless the fault is partial, start waits until the server
// refuses writes.
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

// While a server refuses commands that the lock needs, a waiter gets the lock only if the holder's release succeeded,
// and waiters pause before they reconnect. Once the server accepts the commands again, all waiters get the lock. Each
// process can then acquire the lock and pass it on, even a process that was idle during the fault.
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
				granted := requestRepeatedly(t, "another", holder, after)
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

// requestRepeatedly makes each process request the lock on key repeatedly for 200 ms, and returns the leases that were
// granted.
func requestRepeatedly(t *testing.T, key string, processes ...trial.Process) (leases []*holding) {
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

// alive makes each process in turn acquire the lock. While that process holds the lock, one waiter of every process
// queues, and each of these waiters must then get the lock.
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

// While Redis is paused, Acquire, TryAcquire, Extend and waits for any of 300 keys return the error of the outage. The
// waiters learn of it by their periodic checks. A context of 10 ms ends a call within limit, also in a process without
// connections. After the outage no lock stays taken without a holder, and Redis keeps no entry.
func TestOutageIsReported(t *testing.T) {
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
			q.requestWithTTL(key, "another", p, p.Config.TTL)
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

// If a server knows a script neither by its hash nor by its source, Release returns the error NOSCRIPT without
// repeating the command. The pending release is sent later.
func TestUnknownScriptIsRefusedAtOnce(t *testing.T) {
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

// The check of one local queue does not find slot p at Redis. A late command then queues p, Redis grants the lock to p,
// and the check of another local queue learns of this grant. When the first check replaces p, it must not release the
// lease of p. If p has no lease, the first check must add a pending release for the id of p, because the late command
// may still arrive. In a run of TestChaos for an hour, one lock had two holders because the first check had released
// the lease of p.
func TestGrantedSlotIsNotReleased(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, granted := range []bool{true, false} {
		p := new(wire).start(t, server, "handoff", time.Hour)
		if released := handoff.ReplaceGranted(locker(p), fmt.Sprint("granted ", granted), granted); released == granted {
			t.Errorf("granted %v, released %v", granted, released)
		}
	}
}
