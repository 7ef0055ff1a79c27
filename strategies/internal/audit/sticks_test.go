package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// lost has a process ask for the free lock, which Redis grants, and loses the answer.
func lost(t *testing.T, p *path, locker, other strategies.Locker) (cancel func(), result chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p.mute()
	result = make(chan error, 1)
	go func() {
		lease, err := locker.Acquire(ctx, "key")
		if err == nil {
			_ = lease.Release(context.Background())
			err = errors.New("it was granted all the same")
		}
		result <- err
	}()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		lease, err := other.(strategies.Trier).TryAcquire(ctx, "key")
		if errors.Is(err, strategies.ErrHeld) {
			return cancel, result
		}
		if err == nil {
			err = release(t, lease)
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("the lock is not granted: %v", err)
		}
	}
}

// A lock that was granted while the answer was lost is freed when Redis can be reached
// again, also when whoever asked has been told of the outage.
func TestOutageLeavesNoOwner(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		p := new(path)
		locker := open(t, name, server.Addr, p.dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		_ = release(t, acquire(t, locker))
		cancel, result := lost(t, p, locker, other)
		defer cancel()
		p.block(true)
		p.snap()
		if err := <-result; err == nil {
			t.Error("an outage was not told")
		}
		p.block(false)
		_ = release(t, free(t, other))
	})
}

// So it is when Redis refuses at first to free it.
func TestRefusedReleaseOfNobodys(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		outside := server.Client(t)
		p := new(path)
		locker := open(t, name, server.Addr, p.dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		_ = release(t, acquire(t, locker))
		cancel, result := lost(t, p, locker, other)
		refusals["NOREPLICAS"].begin(t, outside)
		p.snap()
		time.Sleep(300 * time.Millisecond) // it is back, and refused
		cancel()
		<-result
		refusals["NOREPLICAS"].relieve(t, outside)
		_ = release(t, free(t, other))
	})
}

// A fault ends when its cause does: the lock can be had again on the same connection.
func TestFaultEndsWithItsCause(t *testing.T) {
	t.Parallel()
	do := func(args ...any) func(t *testing.T, server *redis.Client) {
		return func(t *testing.T, server *redis.Client) {
			t.Helper()
			if err := server.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	causes := map[string][2]func(*testing.T, *redis.Client){
		"OOM":        {refusals["OOM"].begin, refusals["OOM"].relieve},
		"NOREPLICAS": {refusals["NOREPLICAS"].begin, refusals["NOREPLICAS"].relieve},
		"READONLY":   {do("REPLICAOF", "127.0.0.1", "1"), do("REPLICAOF", "NO", "ONE")},
		"ACL":        {do("ACL", "SETUSER", "default", "-set"), do("ACL", "SETUSER", "default", "+set")},
	}
	for cause, change := range causes {
		t.Run(cause, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t)
				outside := server.Client(t)
				before := open(t, name, server.Addr, nil, time.Minute)
				_ = release(t, acquire(t, before))
				change[0](t, outside)
				if err := outside.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
					t.Fatal(err)
				}
				after := open(t, name, server.Addr, nil, time.Minute) // it knows of nothing else
				for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					for _, locker := range []strategies.Locker{before, after} {
						ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
						if _, err := locker.Acquire(ctx, "key"); err == nil {
							t.Error("the lock was granted in spite of it")
						}
						cancel()
					}
				}
				change[1](t, outside)
				for _, locker := range []strategies.Locker{before, after} {
					var lease strategies.Lease
					var err error
					for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
						lease, err = locker.Acquire(ctx, "key")
						cancel()
						if err == nil {
							break
						}
					}
					if err != nil {
						t.Errorf("the cause is gone, and the fault is not: %v", err)
						continue
					}
					_ = release(t, lease)
				}
			})
		})
	}
}
