package postgres

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	lock "github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/workloads"
)

// A server takes two seconds to start: the tests share one as far as they can.
var shared = sync.OnceValues(func() (store.Server, error) {
	return (Store{}).Open(context.Background(), store.NewRunID(), store.Options{})
})

func TestMain(m *testing.M) {
	drive.ManyAtATime()
	code := m.Run()
	if os.Getenv(victimEnv) == "" {
		if s, err := shared(); err == nil {
			if err := s.Close(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// common is the shared server. What looks at all that is there does not run in parallel.
func common(t *testing.T) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s.(*server)
}

// opened is a server that is closed with the test.
func opened(t *testing.T, runID string, o store.Options) *server {
	t.Helper()
	s, err := (Store{}).Open(t.Context(), runID, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Close(ended); err != nil {
			t.Error(err)
		}
	})
	return s.(*server)
}

// url is how a user of a server of our own reaches it.
func (o *own) url() string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, o.password, o.Addr(), database)
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

// contents are a server's databases, roles, schemas, relations and sessions, but those of who asks.
func contents(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT 'database ' || datname FROM pg_database UNION ALL SELECT 'role ' || rolname FROM pg_roles
		UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp' UNION ALL SELECT format('relation %s %s', relnamespace::regnamespace, relname) FROM pg_class
		UNION ALL SELECT format('lock %s of %s', objid, pid) FROM pg_locks WHERE locktype = 'advisory'
		UNION ALL SELECT format('session %s', application_name) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// measured is a run of three clients that count.
func measured(t *testing.T, s *server, settings map[string]string, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	variant, err := lock.Strategy().Variant(settings)
	if err != nil {
		t.Fatal(err)
	}
	w := drive.Workload(200)
	w.Work = workloads.WorkCounter
	if change != nil {
		change(&w)
	}
	return drive.Run(t, s, s.runID, variant, w)
}

func clean(t *testing.T, run *results.Run) {
	t.Helper()
	if run.Safety.ExpiredOverlaps > 0 || run.Safety.LostUpdates == nil || *run.Safety.LostUpdates > 0 || run.Safety.FencingRegression > 0 {
		t.Errorf("%+v", run.Safety)
	}
}

// kinds are those of the lock: two that differ most, or all.
func kinds() map[string]map[string]string {
	few := map[string]map[string]string{"fence": {"fence": "true"}, "row expire": {"expire": "true", "mode": "row"}}
	if extent.Thorough() {
		maps.Copy(few, map[string]map[string]string{
			"advisory": nil, "xact": {"mode": "xact"}, "row": {"mode": "row"}, "expire": {"expire": "true", "fence": "true"},
		})
	}
	return few
}

func TestARun(t *testing.T) {
	s := common(t)
	before := contents(t, connected(t, s.own.url()))
	for name, settings := range kinds() {
		t.Run(name, func(t *testing.T) {
			run := measured(t, s, settings, nil)
			clean(t, run)
			whole := run.Server.Whole
			if whole == nil || whole.CPU == nil || *whole.CPU <= 0 || *whole.ClientBytesIn < 1000 || *whole.ClientBytesOut < 1000 || whole.Calls != nil {
				t.Fatalf("%+v", whole)
			}
			// Two for the lock, two for the counter, and what opens connections.
			if per := float64(*whole.RoundTrips) / float64(whole.Acquisitions); per < 4 || per > 5 {
				t.Errorf("%.2f round trips an acquisition", per)
			}
			t.Logf("%d acquisitions, %.2f round trips each, %.0f µs of CPU", whole.Acquisitions,
				float64(*whole.RoundTrips)/float64(whole.Acquisitions), *whole.CPU*1e6/float64(whole.Acquisitions))
		})
	}
	about := s.Describe()
	if about.Source != "process" || about.Name != "postgres" || about.Version == "" || about.Durability != "fsync" || strings.Contains(fmt.Sprint(about), s.own.password) {
		t.Errorf("%+v", about)
	}
	s.schemaIsOnly(t, before)
}

// schemaIsOnly expects nothing new beside the session's own schema.
func (s *server) schemaIsOnly(t *testing.T, before []string) {
	t.Helper()
	for _, thing := range contents(t, connected(t, s.own.url())) {
		if !slices.Contains(before, thing) && !strings.Contains(thing, s.schema()) && !strings.HasPrefix(thing, "relation pg_toast") && !strings.HasPrefix(thing, "session ") {
			t.Errorf("there is %s", thing)
		}
	}
}

// A user's server is as it was before, for a role with few rights too.
func TestAUsersServer(t *testing.T) {
	users := common(t)
	eye := connected(t, users.own.url())
	if _, err := eye.Exec(t.Context(), "DROP ROLE IF EXISTS modest; CREATE ROLE modest LOGIN PASSWORD 'x'; REVOKE CREATE ON SCHEMA public FROM public"); err != nil {
		t.Fatal(err)
	}
	var before []string
	poll.Until(t, "the sessions of earlier tests have ended", func() bool {
		before = contents(t, eye)
		return !slices.Contains(before, "session ")
	})
	same := func(t *testing.T) {
		t.Helper()
		defer func() {
			if after := contents(t, eye); t.Failed() {
				t.Logf("before %q, after %q", before, after)
			}
		}()
		poll.Until(t, "the server is as before", func() bool { // backends take a moment to end
			return slices.Equal(before, contents(t, eye))
		})
	}
	for _, name := range slices.Sorted(maps.Keys(kinds())) {
		t.Run(name, func(t *testing.T) {
			s := opened(t, store.NewRunID(), store.Options{Address: users.own.url()})
			run := measured(t, s, kinds()[name], nil)
			clean(t, run)
			if run.Server.Whole.CPU != nil {
				t.Error("the CPU of a user's server is not known")
			}
		})
		same(t)
	}
	t.Run("modest", func(t *testing.T) {
		s := opened(t, store.NewRunID(), store.Options{Address: strings.Replace(users.own.url(), superuser+":"+users.own.password, "modest:x", 1)})
		measured(t, s, nil, func(w *workloads.Spec) { w.Work = workloads.WorkNone })
		if schemas := contents(t, eye); slices.Contains(schemas, "schema "+s.schema()) {
			t.Error("an advisory lock needs no schema")
		}
	})
	same(t)
}

// Leftovers is found, and removed.
func TestLeftovers(t *testing.T) {
	s := common(t)
	name, mark := fmt.Sprintf("lockbench:%s:run7", s.runID), fmt.Sprintf("{%s:7:", s.runID)
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
	if err := instance.Counter(prefix+mark+"0}:counter", workloads.FenceOff, 0).Write(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	left, err := s.Leftovers(t.Context(), mark, name)
	if err != nil || len(left.Keys) != 2 || len(left.Connections) < 2 || !strings.Contains(fmt.Sprint(left.Keys), "advisory lock") {
		t.Errorf("%+v, %v", left, err)
	}
	if other, err := s.Leftovers(t.Context(), fmt.Sprintf("{%s:70:", s.runID), name+"0"); err != nil || len(other.Keys)+len(other.Connections) > 0 {
		t.Errorf("another run's: %+v, %v", other, err)
	}
	if names, err := s.Connected(t.Context(), name); err != nil || !slices.Equal(names, []string{name}) {
		t.Errorf("connected: %q, %v", names, err)
	}
	if err := s.Remove(t.Context(), left.Keys); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil { // whose lease is not released
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
