package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	lock "github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// measured is a run of three clients.
func measured(t *testing.T, s *server, settings map[string]string, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	variant, err := lock.Strategy().Variant(settings)
	if err != nil {
		t.Fatal(err)
	}
	w := workloads.Default()
	w.Clients, w.Instances, w.Work = 3, 3, workloads.WorkCounter
	w.Warmup, w.Duration = workloads.Duration(200*time.Millisecond), workloads.Duration(time.Second)
	if change != nil {
		change(&w)
	}
	faults := s.Faults(w.Faults)
	defer faults.Close()
	run, err := engine.Job{Strategy: variant, Workload: w, Target: s, Session: s.runID, Number: 1, Round: 1, Order: 1, Faults: faults}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func clean(t *testing.T, run *results.Run) {
	t.Helper()
	switch left := run.Safety.LeftoverCount; {
	case !run.Valid(), len(run.Errors) > 0, run.Speed.Acquisitions < 10:
		t.Errorf("invalid %v, errors %v, %d acquisitions", run.Invalid, run.Errors, run.Speed.Acquisitions)
	case run.Safety.Overlaps+run.Safety.Late > 0, run.Safety.LostUpdates == nil, *run.Safety.LostUpdates > 0, run.Safety.FencingRegression > 0:
		t.Errorf("%+v", run.Safety)
	case left == nil || *left > 0:
		t.Errorf("left behind: %v", run.Safety.Leftovers)
	}
}

var kinds = map[string]map[string]string{
	"advisory": nil, "fence": {"fence": "true"}, "xact": {"mode": "xact"}, "row": {"mode": "row"},
	"expire": {"expire": "true", "fence": "true"}, "row expire": {"expire": "true", "mode": "row"},
}

func TestARun(t *testing.T) {
	s := opened(t, store.NewRunID(), store.Options{})
	before := contents(t, connected(t, s.own.url()))
	for name, settings := range kinds {
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
	users := opened(t, "users", store.Options{})
	eye := connected(t, users.own.url())
	if _, err := eye.Exec(t.Context(), "CREATE ROLE modest LOGIN PASSWORD 'x'; REVOKE CREATE ON SCHEMA public FROM public"); err != nil {
		t.Fatal(err)
	}
	before := contents(t, eye)
	same := func(t *testing.T) {
		t.Helper()
		var after []string
		for range 100 { // backends take a moment to end
			if after = contents(t, eye); slices.Equal(before, after) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("before: %q\nafter: %q", before, after)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			s := opened(t, store.NewRunID(), store.Options{Address: users.own.url()})
			run := measured(t, s, kinds[name], nil)
			clean(t, run)
			if run.Server.Whole.CPU != nil {
				t.Error("the CPU of a user's server is not known")
			}
		})
		same(t)
	}
	t.Run("modest", func(t *testing.T) {
		s := opened(t, store.NewRunID(), store.Options{Address: strings.Replace(users.own.url(), superuser+":"+users.own.password, "modest:x", 1)})
		run := measured(t, s, nil, func(w *workloads.Spec) { w.Work = workloads.Default().Work })
		if !run.Valid() || len(run.Errors) > 0 || *run.Safety.LeftoverCount > 0 {
			t.Errorf("invalid %v, errors %v, left %v", run.Invalid, run.Errors, run.Safety.Leftovers)
		}
		if schemas := contents(t, eye); slices.Contains(schemas, "schema "+s.schema()) {
			t.Error("an advisory lock needs no schema")
		}
	})
	same(t)
}

// What is left behind is found, and removed.
func TestLeftovers(t *testing.T) {
	s := opened(t, store.NewRunID(), store.Options{})
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
	for range 100 {
		if left, err = s.Leftovers(t.Context(), mark, name); err != nil || len(left.Keys)+len(left.Connections) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil || len(left.Keys)+len(left.Connections) > 0 {
		t.Errorf("%+v, %v", left, err)
	}
}
