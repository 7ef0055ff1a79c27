package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/store"
	pgstore "github.com/lockbench/lockbench/internal/store/postgres"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gopgx"
	"github.com/lockbench/lockbench/strategies/postgres"
)

// server is the PostgreSQL of all tests.
var server store.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx := context.Background()
		var err error
		if server, err = (pgstore.Store{}).Open(ctx, store.NewRunID(), store.Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		result := m.Run()
		if err := server.Close(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := goleak.Find(); err != nil && result == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return result
	}())
}

var names atomic.Int64

// node is a way to a server, and the name of the connections that take it.
func node(t *testing.T, on store.Server) (gopgx.Node, string) {
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
	return instance.Nodes()[0].(gopgx.Node), name
}

// open opens the lock as one process would.
func open(t *testing.T, on store.Server, ttl time.Duration, options postgres.Options) *postgres.Locker {
	t.Helper()
	at, _ := node(t, on)
	return openAt(t, at, ttl, options)
}

func openAt(t *testing.T, at gopgx.Node, ttl time.Duration, options postgres.Options) *postgres.Locker {
	t.Helper()
	locker, err := postgres.Open(gopgx.Config{Nodes: []gopgx.Node{at}, Prefix: "lockbench:{" + t.Name(), TTL: ttl}, options)
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

// look is a connection of the test's own.
func look(t *testing.T, on store.Server) *pgx.Conn {
	t.Helper()
	at, _ := node(t, on)
	conn, err := pgx.ConnectConfig(t.Context(), at.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// number asks for one.
func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// modes are kinds of the lock: each mode and each option once, or all.
func modes() map[string]postgres.Options {
	few := map[string]postgres.Options{
		"advisory": {Mode: postgres.Advisory}, "xact": {Mode: postgres.Xact}, "row expire": {Mode: postgres.Row, Expire: true},
		"advisory fence expire": {Mode: postgres.Advisory, Fence: true, Expire: true},
	}
	if extent.Thorough() {
		maps.Copy(few, map[string]postgres.Options{
			"row": {Mode: postgres.Row}, "xact expire": {Mode: postgres.Xact, Expire: true},
			"advisory fence": {Mode: postgres.Advisory, Fence: true}, "advisory expire": {Mode: postgres.Advisory, Expire: true},
		})
	}
	return few
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
