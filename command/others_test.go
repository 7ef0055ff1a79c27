//go:build !redisonly

package command_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies/gozk"

	_ "github.com/lockbench/lockbench/stores"
)

// init adds servers of the other stores to usersServers. The tests in this file need such a store or the list of all
// strategies. "make others" runs them.
func init() {
	usersServers = append(usersServers, startsUsersServer{"postgres", usersPostgres},
		startsUsersServer{"etcd", usersEtcd}, startsUsersServer{"zookeeper", usersZooKeeper})
}

func TestScriptsOfOtherStores(t *testing.T) { scripts(t, "testdata/others") }

// A run that speaks TLS to an etcd without TLS must print the next step for etcd once, and must not suggest addresses
// of Redis.
func TestNextStepForEtcd(t *testing.T) {
	code, _, said := run(t, "-s", "etcd", "-u", "etcds://"+openedAsProcess(t, "etcd").Describe().Address)
	if code != command.ExitUnreachable || strings.Count(said, "etcd:// instead of etcds://") != 1 ||
		strings.Contains(said, "redis://") {
		t.Errorf("exit code %d, said: %s", code, said)
	}
}

// If no server listens at an address, clean and doctor must name the address and end with ExitUnreachable.
func TestCleanAndDoctorWithoutServer(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"redis", "etcd", "postgres", "zk"} {
		for _, subcommand := range []string{"clean", "doctor"} {
			code, said, wrong := run(t, subcommand, "-u", scheme+"://127.0.0.1:1")
			if code != command.ExitUnreachable || !strings.Contains(wrong, "127.0.0.1:1") {
				t.Errorf("%s of %s ended with %d: %s%s", subcommand, scheme, code, said, wrong)
			}
		}
	}
}

// anyStore lists texts that doctor must print for each store other than Redis.
var anyStore = []string{
	"reachable ", "\nserver ", "\nlimits ", "\nrights ", "\nfigures ", "strategies could acquire and release",
}

func usersEtcd(t *testing.T) usersServer {
	etcd := openedAsProcess(t, "etcd")
	instance, err := etcd.Connect(t.Context(), "theirs", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() })
	client := instance.Nodes()[0].(*clientv3.Client)
	put := func(key string, options ...clientv3.OpOption) {
		if _, err := client.Put(t.Context(), key, "dear", options...); err != nil {
			t.Fatal(err)
		}
	}
	granted, err := client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	put("services/1", clientv3.WithLease(granted.ID))
	return usersServer{
		url: "etcd://" + etcd.Describe().Address, strategies: []string{"etcd", "etcd:watch=next"}, ttl: "5s",
		doctor: anyStore, held: ":1:0}/",
		put: func(name string) { put(name) },
		all: func() []string {
			keys, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey())
			if err != nil {
				t.Fatal(err)
			}
			leases, err := client.Leases(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, kv := range keys.Kvs {
				lines = append(lines, fmt.Sprintf("key %s = %q of revisions %d to %d, lease %x", kv.Key, kv.Value,
					kv.CreateRevision, kv.ModRevision, kv.Lease))
			}
			for _, l := range leases.Leases {
				lines = append(lines, fmt.Sprintf("lease %x", int64(l.ID)))
			}
			return lines
		},
	}
}

// openedAsProcess starts a server of the named store as a process, not in a container. The tests treat it as a user's
// server.
func openedAsProcess(t *testing.T, name string) store.Server {
	t.Helper()
	kind, err := store.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	server, err := kind.Open(t.Context(), store.NewRunID(), store.Options{Address: "process"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// everythingIn is an SQL query whose rows describe the objects, settings, advisory locks and sessions of a PostgreSQL
// server.
const everythingIn = `SELECT 'database ' || datname FROM pg_database
	UNION ALL SELECT 'role ' || rolname FROM pg_roles
	UNION ALL SELECT format('schema %s of %s', nspname, nspowner) FROM pg_namespace
	UNION ALL SELECT format('relation %s %s of %s', relnamespace::regnamespace, relname, oid) FROM pg_class
	UNION ALL SELECT format('setting %s %s %s', setdatabase, setrole, setconfig) FROM pg_db_role_setting
	UNION ALL SELECT format('%s functions', count(*)) FROM pg_proc
	UNION ALL SELECT format('advisory lock of %s', application_name)
		FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
	UNION ALL SELECT format('session %s of %s', application_name, usename)
		FROM pg_stat_activity WHERE backend_type = 'client backend'`

// usersPostgres returns a PostgreSQL that lockbench uses as a user without superuser rights.
func usersPostgres(t *testing.T) usersServer {
	server := openedAsProcess(t, "postgres")
	instance, err := server.Connect(t.Context(), "started", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() })
	config := instance.Nodes()[0].(*pgx.ConnConfig)
	connect := func(name string) *pgx.Conn {
		mine := config.Copy()
		mine.RuntimeParams["application_name"] = name
		conn, err := pgx.ConnectConfig(t.Context(), mine)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	exec := func(conn *pgx.Conn, sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	service, eye := connect("service"), connect("eye")
	exec(service, "CREATE ROLE bench LOGIN PASSWORD 'a/b:c'; GRANT CREATE ON SCHEMA public TO bench")
	exec(service, "SELECT pg_advisory_lock(42)")
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword("bench", "a/b:c"), Host: server.Describe().Address,
		Path: "/postgres", RawQuery: "sslmode=disable",
	}
	return usersServer{
		url: address.String(), strategies: []string{"postgres"}, ttl: "5s", doctor: anyStore,
		held: "advisory lock of lockbench:",
		put:  func(name string) { exec(eye, "CREATE SEQUENCE "+pgx.Identifier{name}.Sanitize()) },
		all: func() []string {
			rows, err := eye.Query(t.Context(), everythingIn)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			// Leave out the connections of the test itself.
			return slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "session ") && strings.HasSuffix(line, " of "+config.User) &&
					!strings.HasPrefix(line, "session service")
			})
		},
	}
}

// A run must remove the table that it created for --work transaction, even after an interrupt. clean must remove the
// table of a killed run, and nothing else.
func TestTransactionTableIsRemoved(t *testing.T) {
	t.Parallel()
	user := usersPostgres(t)
	user.put("lockbench_a1b2c3d4")
	relations := func() []string {
		return slices.DeleteFunc(user.all(), func(line string) bool { return !strings.HasPrefix(line, "relation ") })
	}
	before := relations()
	same := func(after string) {
		t.Helper()
		if found := differences(before, relations()); len(found) > 0 {
			t.Errorf("after %s it is not what it was: %q", after, found)
		}
	}
	flags := []string{"-u", user.url, "-s", "noop", "--work", "transaction", "-c", "4", "-w", "0s", "--no-baselines"}
	startHoldingRun := func() *process {
		t.Helper()
		p := start(t, "lockbench", append(flags, "-d", "40s")...)
		p.await("[1/")
		poll.Until(t, "the run has its table", func() bool { return count(relations(), " lockbench_") > 1 })
		return p
	}

	file := filepath.Join(t.TempDir(), "out.json")
	code, said, wrong := run(t,
		append(flags, "-n", "400", "--row", "plain,version", "-o", "tables", "-o", "json="+file)...)
	if code != command.ExitOK && code != command.ExitInvalid { // the machine may be too busy to measure on
		t.Errorf("a run ended with %d:\n%s%s", code, said, wrong)
	}
	same("a run")
	for form, want := range map[string]string{
		"table":    "noop row=plain: lost [0-9]+ updates of the row that the lock protects",
		"html":     "lost [0-9]+ updates of the row that the lock protects",
		"markdown": "updates lost",
	} {
		if _, said, _ := run(t, "report", file, "-o", form); !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("as %s it is\n%s", form, said)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"lost_updates": 0,`) ||
		!regexp.MustCompile(`"lost_updates": [1-9]`).Match(text) {
		t.Errorf("as JSON it is %v\n%s", err, text)
	}

	interrupted := startHoldingRun()
	interrupted.signal(syscall.SIGINT)
	if code := interrupted.code(); code != "105" {
		t.Errorf("a run that was interrupted ended with %s:\n%s", code, &interrupted.said)
	}
	same("an interrupt")

	killed := startHoldingRun()
	if code, said, wrong := run(t, "clean", "-u", user.url); code != command.ExitOK ||
		strings.Contains(said+wrong, "of dead runs") {
		t.Errorf("clean during a run ended with %d: %s%s", code, said, wrong)
	}
	killed.signal(os.Kill)
	killed.code()
	poll.Until(t, "the sessions of the killed run end", func() bool {
		return count(user.all(), "session lockbench:") == 0
	})
	if code, said, wrong := run(t, "clean", "-u", user.url); code != command.ExitOK ||
		!strings.Contains(said+wrong, "removed 1 table of dead runs") {
		t.Errorf("clean after a killed run ended with %d: %s%s", code, said, wrong)
	}
	same("clean")
}

// usersZooKeeper returns a ZooKeeper in which lockbench may write only below one node. The usersServer's function all
// returns the whole tree.
func usersZooKeeper(t *testing.T) usersServer {
	addr := openedAsProcess(t, "zookeeper").Describe().Address
	session, err := gozk.Node{Servers: []string{addr}}.Connect(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	create := func(path string, flags int32) {
		if _, err := session.Create(t.Context(), path, []byte("dear"), flags); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	create("/app", zk.FlagPersistent)
	create("/services", zk.FlagPersistent)
	create("/services/1", zk.FlagEphemeral)
	create("/services/n-", zk.FlagEphemeral|zk.FlagSequence)
	var below func(path string) []string
	below = func(path string) []string {
		children, err := session.Children(t.Context(), path)
		if err != nil {
			return nil // the node was deleted in the meantime
		}
		var lines []string
		for _, child := range children.Names {
			at := strings.TrimSuffix(path, "/") + "/" + child
			value, err := session.Get(t.Context(), at)
			if err != nil {
				continue
			}
			lines = append(lines, fmt.Sprintf("node %s = %q of transactions %d to %d, session %x", at, value.Data,
				value.Stat.Czxid, value.Stat.Mzxid, value.Stat.EphemeralOwner))
			lines = append(lines, below(at)...)
		}
		return lines
	}
	return usersServer{
		url: "zk://" + addr + "/app", strategies: []string{"zookeeper"}, ttl: "5s", doctor: anyStore,
		held: "/_c_", fades: "session -8000000000000000", // containers, which ZooKeeper deletes within a minute
		put: func(name string) { create("/app/"+gozk.Name(name), zk.FlagPersistent) },
		all: func() []string { return below("/") },
	}
}
