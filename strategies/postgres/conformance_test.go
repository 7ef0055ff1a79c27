package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/postgres"
)

func TestConformance(t *testing.T) {
	rounds := 10
	if extent.Thorough() {
		rounds = 0
	}
	locktest.Run(t, func(t *testing.T) locktest.Fixture {
		eye := &eye{conn: inspectingConnection(t, shared.Get(t))}
		at, called := node(t, shared.Get(t)) // here, since the suite counts what its lockers leave
		return locktest.Fixture{Rounds: rounds, Open: func(c goredis.Config) (strategies.Locker, error) {
			locker, err := postgres.Open(postgres.Config{
				Nodes: []*pgx.ConnConfig{at}, Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers,
			}, postgres.Options{})
			return seen{locker, c.Probe, eye, called}, err
		}}
	}, postgres.Strategy().Info)
}

// seen is a Locker that counts an attempt as soon as its caller waits in PostgreSQL, or when Acquire returns. The
// conformance suite takes an attempt as a sign that the caller is in the queue.
type seen struct {
	*postgres.Locker
	probe  *strategies.Probe
	eye    *eye
	called string
}

func (s seen) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	before := s.eye.waiting(s.called)
	over := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		defer s.probe.Attempt()
		for {
			select {
			case <-over:
				return
			case <-time.After(2 * time.Millisecond):
			}
			if s.eye.waiting(s.called) > before {
				return
			}
		}
	})
	defer looking.Wait()
	defer close(over)
	return s.Locker.Acquire(ctx, key)
}

// eye queries PostgreSQL for waiting connections. It uses a connection of its own.
type eye struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// waiting returns how many connections with the application_name called wait for a lock. It returns -1 if the query
// fails.
func (e *eye) waiting(called string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	const asked = `SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
		WHERE NOT granted AND application_name = $1`
	if err := e.conn.QueryRow(context.Background(), asked, called).Scan(&n); err != nil {
		return -1
	}
	return n
}
