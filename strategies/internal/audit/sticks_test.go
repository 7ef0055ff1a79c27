package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// lost has a process ask for the free lock, which Redis grants, and loses the answer.
func lost(t *testing.T, p *trial.Path, locker, other strategies.Locker) (cancel func(), result chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p.Mute()
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
		p := new(trial.Path)
		locker := open(t, name, server.Addr, p.Dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		_ = release(t, acquire(t, locker))
		cancel, result := lost(t, p, locker, other)
		defer cancel()
		p.Block(true)
		p.Snap()
		if err := <-result; err == nil {
			t.Error("an outage was not told")
		}
		p.Block(false)
		_ = release(t, free(t, other))
	})
}

// So it is when Redis refuses at first to free it.
func TestRefusedReleaseOfNobodys(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		outside := server.Client(t)
		p := new(trial.Path)
		locker := open(t, name, server.Addr, p.Dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		_ = release(t, acquire(t, locker))
		cancel, result := lost(t, p, locker, other)
		refusals["NOREPLICAS"].begin(t, outside)
		p.Snap()
		time.Sleep(300 * time.Millisecond) // it is back, and refused
		cancel()
		<-result
		refusals["NOREPLICAS"].relieve(t, outside)
		_ = release(t, free(t, other))
	})
}
