package audit

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// cause is what keeps a lock from working, from begin to relieve.
type cause struct {
	begin, relieve func(t *testing.T, server *redis.Client)
	// partly says that a lock may be had all the same while nobody else wants it.
	partly bool
}

// asking is a cause that commands begin and relieve.
func asking(begin, relieve []any) cause {
	do := func(args []any) func(t *testing.T, server *redis.Client) {
		return func(t *testing.T, server *redis.Client) {
			t.Helper()
			if err := server.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cause{begin: do(begin), relieve: do(relieve)}
}

// rights are taken from the default user, and granted later.
func rights(without, granted string, partly bool) cause {
	c := asking([]any{"ACL", "SETUSER", "default", without}, []any{"ACL", "SETUSER", "default", granted})
	c.partly = partly
	return c
}

// replica has a server be one of a primary that is not there.
var replica = asking([]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"})

var causes = map[string]cause{
	"OOM":        {begin: refusals["OOM"].begin, relieve: refusals["OOM"].relieve},
	"NOREPLICAS": {begin: refusals["NOREPLICAS"].begin, relieve: refusals["NOREPLICAS"].relieve},
	"READONLY":   replica,
	"MASTERDOWN": {relieve: replica.relieve, begin: func(t *testing.T, server *redis.Client) {
		set(t, server, "replica-serve-stale-data", "no")
		replica.begin(t, server)
	}},
	"no keys":     rights("resetkeys", "allkeys", false),
	"no channels": rights("resetchannels", "allchannels", true),
	"no pubsub":   rights("-@pubsub", "+@pubsub", true),
	"no scripts":  rights("-@scripting", "+@scripting", true),
	"no lists":    rights("-@list", "+@list", true),
}

// A fault ends when its cause does, also when it lasted for as long only as all processes
// took to connect again: each can have the lock, and pass it to another.
func TestFaultEndsWithItsCause(t *testing.T) {
	t.Parallel()
	for name, c := range causes {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t)
				outside := server.Client(t)
				before := open(t, name, server.Addr, nil, time.Minute)
				_ = release(t, acquire(t, before))
				c.begin(t, outside)
				disconnect(t, outside)
				after := open(t, name, server.Addr, nil, time.Minute) // it knows of nothing else
				leases := struggle(t, 200*time.Millisecond, before, after)
				if len(leases) > 0 && !c.partly {
					t.Error("the lock was granted in spite of it")
				}
				c.relieve(t, outside)
				for _, lease := range leases {
					_ = release(t, lease)
				}
				alive(t, before, after)
			})
		})
	}
}

// A process that knows of a replica only can use the lock once that is promoted.
func TestReplicaIsPromoted(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		p := trial.StartPair(t)
		addr := p.Addr(1)
		a, b := open(t, name, addr, nil, time.Minute), open(t, name, addr, nil, time.Minute)
		if leases := struggle(t, 300*time.Millisecond, a, b); len(leases) > 0 {
			t.Error("a replica granted the lock")
		}
		replica.relieve(t, p.Nodes[1])
		alive(t, a, b)
	})
}

// disconnect has Redis close all connections but the test's own.
func disconnect(t *testing.T, server *redis.Client) {
	t.Helper()
	for _, kind := range []string{"normal", "pubsub"} {
		if err := server.ClientKillByFilter(t.Context(), "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// struggle has each process ask for the lock again and again for so long, and returns what
// was granted.
func struggle(t *testing.T, length time.Duration, lockers ...strategies.Locker) (leases []strategies.Lease) {
	t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, locker := range lockers {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			if lease, err := locker.Acquire(ctx, "key"); err == nil {
				leases = append(leases, lease)
			}
			cancel()
		}
	}
	return leases
}

// alive expects that each process can have the lock soon, and that the
// others wait for it and are served.
func alive(t *testing.T, lockers ...strategies.Locker) {
	t.Helper()
	for n, locker := range lockers {
		lease, err := soon(t, locker)
		if err != nil {
			t.Errorf("the cause is gone, and the fault is not, for process %d: %v", n, err)
			continue
		}
		b := &book{t: t}
		b.enter(n, lease)
		w := b.wait(0, lockers...)
		b.leave(lease)
		if err := release(t, lease); err != nil {
			t.Errorf("the release returned %v", err)
		}
		w.all.Wait()
	}
}

// soon acquires the lock, with as many tries as patience allows: less than a lease lasts.
func soon(t *testing.T, locker strategies.Locker) (lease strategies.Lease, err error) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		lease, err = locker.Acquire(ctx, "key")
		cancel()
		if err == nil {
			return lease, nil
		}
	}
	return nil, err
}
