package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
	pgstore "github.com/lockbench/lockbench/internal/store/postgres"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/postgres"
)

var shared = drive.Share(pgstore.Store())

func TestMain(m *testing.M) { shared.Main(m) }

var names atomic.Int64

// node returns a configuration for connections to the server, and the unique application_name of these connections.
func node(t *testing.T, on store.Server) (*pgx.ConnConfig, string) {
	t.Helper()
	name := fmt.Sprintf("lockbench:test:run%d", names.Add(1))
	instance, err := on.Connect(t.Context(), name, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return instance.Nodes()[0].(*pgx.ConnConfig), name
}

// open opens a Locker that shares no connections with others, as in a separate process.
func open(t *testing.T, on store.Server) *postgres.Locker {
	t.Helper()
	at, _ := node(t, on)
	return openAt(t, at)
}

func openAt(t *testing.T, at *pgx.ConnConfig) *postgres.Locker {
	t.Helper()
	const ttl = 5 * time.Minute
	config := postgres.Config{Nodes: []*pgx.ConnConfig{at}, Prefix: "lockbench:{" + t.Name(), TTL: ttl}
	locker, err := postgres.Open(config, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			t.Error(err)
		}
	})
	return locker
}

func inspectingConnection(t *testing.T, on store.Server) *pgx.Conn {
	t.Helper()
	at, _ := node(t, on)
	conn, err := pgx.ConnectConfig(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func acquire(t *testing.T, locker strategies.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	lease, err := locker.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}
