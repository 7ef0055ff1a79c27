package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	lock "github.com/lockbench/lockbench/strategies/postgres"
)

var shared = drive.Share(Store())

func TestMain(m *testing.M) { shared.Main(m) }

// common returns the server that the tests of this package share. A test that reads all of its contents must not run in
// parallel.
func common(t *testing.T) *server { return shared.Get(t).(*server) }

func opened(t *testing.T, o store.Options) *server { return drive.Open(t, Store(), o).(*server) }

// url returns the URL at which s accepts clients, with the superuser and its password.
func (s *server) url() string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, s.password, s.Own[0].Addr(), database)
}

func connected(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// contents lists the databases, roles, schemas, relations, advisory locks and sessions of the server of conn. It omits
// the session of conn.
func contents(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT 'database ' || datname FROM pg_database
		UNION ALL SELECT 'role ' || rolname FROM pg_roles
		UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
		UNION ALL SELECT format('relation %s %s', relnamespace::regnamespace, relname) FROM pg_class
		UNION ALL SELECT format('lock %s of %s', objid, pid) FROM pg_locks WHERE locktype = 'advisory'
		UNION ALL SELECT format('session %s', application_name) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRoleWithOnlyConnect runs the lock as a role whose only right is CONNECT. The lock must work and must create
// nothing in the database.
func TestRoleWithOnlyConnect(t *testing.T) {
	users := common(t)
	eye := connected(t, users.url())
	const role = "CREATE ROLE modest LOGIN PASSWORD 'x'; REVOKE CREATE ON SCHEMA public FROM public"
	if _, err := eye.Exec(t.Context(), "DROP ROLE IF EXISTS modest; "+role); err != nil {
		t.Fatal(err)
	}
	before := contents(t, eye)
	theirs := strings.Replace(users.url(), superuser+":"+users.password, "modest:x", 1)
	s := opened(t, store.Options{Address: theirs})
	variant, err := lock.Strategy().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	run := drive.Run(t, s, s.RunID, variant, drive.Workload(50))
	if run.Server.Whole.CPU != nil {
		t.Error("the CPU of a user's server is not known")
	}
	for _, line := range contents(t, eye) {
		if !slices.Contains(before, line) && !strings.HasPrefix(line, "session ") {
			t.Errorf("the lock made %s", line)
		}
	}
}

// Leftovers must find a lock that is held and the connections of its run. When these connections have ended, it must
// find neither.
func TestLeftovers(t *testing.T) {
	s := common(t)
	name, mark := fmt.Sprintf("lockbench:%s:run7", s.RunID), fmt.Sprintf("{%s:7:", s.RunID)
	instance, err := s.Connect(t.Context(), name, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	locker, err := lock.Strategy().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := locker.Open(strategies.Config{Nodes: instance.Nodes(), Prefix: prefix, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(t.Context(), mark+"0}"); err != nil {
		t.Fatal(err)
	}
	left, err := s.Leftovers(t.Context(), mark, name)
	if err != nil || len(left.Keys) != 1 || len(left.Connections) != 1 ||
		!strings.Contains(fmt.Sprint(left.Keys), "advisory lock") {
		t.Errorf("%+v, %v", left, err)
	}
	other, err := s.Leftovers(t.Context(), fmt.Sprintf("{%s:70:", s.RunID), name+"0")
	if err != nil || len(other.Keys)+len(other.Connections) > 0 {
		t.Errorf("another run's: %+v, %v", other, err)
	}
	if err := l.Close(); err != nil { // its lease has not been released
		t.Error(err)
	}
	if err := instance.Close(); err != nil {
		t.Error(err)
	}
	poll.Until(t, "nothing is left", func() bool {
		left, err := s.Leftovers(t.Context(), mark, name)
		if err != nil {
			t.Fatal(err)
		}
		return len(left.Keys)+len(left.Connections) == 0
	})
}

// A reading counts the bytes written to the write-ahead log. A write must add at least its own size, and an advisory
// lock must add less. No other client may write during this test.
func TestWrittenBytesAreCounted(t *testing.T) {
	s := common(t)
	wal := func(sql string) int64 {
		t.Helper()
		before, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		after, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *after.Since(before, 1).WALBytes
	}
	const rows, row = 1000, 100
	least := int64(rows * row)
	if n := wal("CREATE TABLE written AS SELECT repeat('x', 100) FROM generate_series(1, 1000)"); n < least {
		t.Errorf("%d rows of %d bytes added %d bytes to the log", rows, row, n)
	}
	if n := wal("SELECT pg_advisory_lock(7), pg_advisory_unlock(7)"); n >= least {
		t.Errorf("an advisory lock added %d bytes to the log", n)
	}
	if n := wal("DROP TABLE written"); n == 0 {
		t.Error("what drops a table was not counted")
	}
}
