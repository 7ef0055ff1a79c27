package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/postgres"
)

// The server ends the holder's session. The next waiter must get the lock, and the holder's Release must return
// ErrNotHeld.
func TestLeaseEndsWithSession(t *testing.T) {
	at, called := node(t, shared.Get(t))
	dying, living, eye := openAt(t, at), open(t, shared.Get(t)), inspectingConnection(t, shared.Get(t))
	lease := acquire(t, dying, "key")
	next := make(chan strategies.Lease, 1)
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	go func() {
		lease, err := living.Acquire(ctx, "key")
		if err != nil {
			t.Error(err)
		}
		next <- lease
	}()
	poll.Until(t, "a client waits", func() bool {
		return number(t, eye, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") == 1
	})
	select {
	case <-next:
		t.Error("two hold it")
	case <-time.After(20 * time.Millisecond):
	}
	const terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1"
	if number(t, eye, terminate, called) == 0 {
		t.Fatal("there was nothing to end")
	}
	granted := <-next
	if granted == nil {
		t.Fatal("no client got the lock")
	}
	if err := lease.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("its release returned %v", err)
	}
	if _, err := dying.TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a late release has freed the lock: %v", err)
	}
	release(t, granted)
	release(t, acquire(t, dying, "key")) // its process goes on
}

// The context of a release is already done. Release must end the connection, so that another process can acquire the
// lock.
func TestReleaseWithAnEndedContext(t *testing.T) {
	lease := acquire(t, open(t, shared.Get(t)), "key")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lease.Release(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("it returned %v", err)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the second returned %v", err)
	}
	release(t, acquire(t, open(t, shared.Get(t)), "key"))
}

// The number of a key's advisory lock must follow the documented formula, both in Go and as an SQL expression in
// PostgreSQL.
func TestNumber(t *testing.T) {
	at, _ := node(t, shared.Get(t))
	config := postgres.Config{Nodes: []*pgx.ConnConfig{at}, TTL: time.Minute}
	locker, err := postgres.Open(config, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	sum := sha256.Sum256([]byte("order:17"))
	want := int64(binary.BigEndian.Uint64(sum[:]))
	eye := inspectingConnection(t, shared.Get(t))
	const documented = `SELECT ('x' || left(encode(sha256(convert_to('order:17', 'UTF8')), 'hex'), 16))
		::bit(64)::bigint`
	if got := number(t, eye, documented); got != want {
		t.Errorf("PostgreSQL says %d, and Go %d", got, want)
	}
	lease := acquire(t, locker, "order:17")
	if number(t, eye, "SELECT pg_try_advisory_lock($1)::int", want) != 0 {
		t.Error("that number is not locked")
	}
	release(t, lease)
	if number(t, eye, "SELECT pg_try_advisory_lock($1)::int", want) != 1 {
		t.Error("that number is still locked")
	}
}
