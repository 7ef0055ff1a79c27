package command_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/strategies/gopgx"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// usersServer is a server that somebody has, with things on it that are not lockbench's.
type usersServer struct {
	url        string
	strategies string
	nothing    string // the URL of a port on which nobody listens
	// all is everything that is on the server and who is connected to it, a line each,
	// sorted.
	all func() []string
	// held are parts of lines that are there once a client of lockbench's has had a lock.
	held []string
	// alive is part of the lines that are there as long as a lockbench counts as connected.
	alive string
	// litter puts something there, of which the name is returned.
	litter func() string
}

// usersServers start a server of each store beside Redis, until the test ends.
var usersServers = map[string]func(*testing.T) usersServer{"etcd": usersEtcd, "postgres": usersPostgres, "zookeeper": usersZooKeeper}

func usersEtcd(t *testing.T) usersServer {
	etcd := etcdtest.Start(t, 1)
	client := etcd.Client(t)
	put := func(key string, options ...clientv3.OpOption) {
		if _, err := client.Put(t.Context(), key, "dear", options...); err != nil {
			t.Fatal(err)
		}
	}
	put("config/port")
	put("lockbenchmark/config")
	put("lockbench:{")
	granted, err := client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	put("services/1", clientv3.WithLease(granted.ID))
	return usersServer{
		url: "etcd://" + etcd.Endpoints[0], nothing: "etcd://127.0.0.1:1", strategies: "etcd,etcd:watch=next",
		held: []string{":counter"}, alive: "key lockbench/connected/",
		litter: func() string { put("lockbench:litter"); return "lockbench:litter" },
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
				lines = append(lines, fmt.Sprintf("key %s = %q of revisions %d to %d, lease %x", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Lease))
			}
			for _, l := range leases.Leases {
				lines = append(lines, fmt.Sprintf("lease %x", int64(l.ID)))
			}
			slices.Sort(lines)
			return lines
		},
	}
}

// openedAsProcess starts a server as lockbench does, to be the user's.
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

// usersPostgres lets a user in who is no superuser.
func usersPostgres(t *testing.T) usersServer {
	server := openedAsProcess(t, "postgres")
	instance, err := server.Connect(t.Context(), "started", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() })
	config := instance.Nodes()[0].(gopgx.Node).Config
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
	exec(service, `CREATE ROLE bench LOGIN PASSWORD 'a/b:c'; GRANT CREATE ON DATABASE postgres TO bench;
		CREATE TABLE dear (n int); INSERT INTO dear VALUES (7), (8);
		CREATE SCHEMA lockbench_session_mine; CREATE TABLE lockbench_session_mine.dear (n int); ALTER SCHEMA lockbench_session_mine OWNER TO bench;
		CREATE SCHEMA lockbench; CREATE TABLE lockbench.lockbench_lock (key bytea PRIMARY KEY); INSERT INTO lockbench.lockbench_lock VALUES ('mine');
		ALTER SCHEMA lockbench OWNER TO bench;
		SELECT pg_advisory_lock(42)`)
	address := func(at string) string {
		return (&url.URL{Scheme: "postgres", User: url.UserPassword("bench", "a/b:c"), Host: at, Path: "/postgres", RawQuery: "sslmode=disable"}).String()
	}
	return usersServer{
		url: address(server.Describe().Address), nothing: address("127.0.0.1:1"), strategies: "postgres,postgres:mode=row",
		held: []string{"lockbench_counter"}, alive: "session lockbench:",
		litter: func() string { exec(eye, "CREATE SEQUENCE litter"); return "litter" },
		all: func() []string {
			rows, err := eye.Query(t.Context(), `SELECT 'database ' || datname FROM pg_database UNION ALL SELECT 'role ' || rolname FROM pg_roles
				UNION ALL SELECT format('schema %s of %s', nspname, nspowner) FROM pg_namespace
				UNION ALL SELECT format('relation %s %s of %s', relnamespace::regnamespace, relname, oid) FROM pg_class
				UNION ALL SELECT format('setting %s %s %s', setdatabase, setrole, setconfig) FROM pg_db_role_setting
				UNION ALL SELECT 'extension ' || extname FROM pg_extension UNION ALL SELECT format('%s functions', count(*)) FROM pg_proc
				UNION ALL SELECT 'row ' || n FROM dear UNION ALL SELECT format('row %s', key) FROM lockbench.lockbench_lock
				UNION ALL SELECT format('advisory lock of %s', application_name) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
				UNION ALL SELECT format('prepared %s', gid) FROM pg_prepared_xacts
				UNION ALL SELECT format('session %s of %s', application_name, usename) FROM pg_stat_activity WHERE backend_type = 'client backend' ORDER BY 1`)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			// The connections that stand for who started the server are not the user's.
			return slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "session ") && strings.HasSuffix(line, " of "+config.User) && !strings.HasPrefix(line, "session service")
			})
		},
	}
}

// usersZooKeeper has one look at the whole tree, of which a part is given to lockbench.
func usersZooKeeper(t *testing.T) usersServer {
	addr := openedAsProcess(t, "zookeeper").Describe().Address
	session, err := gozk.Node{Servers: []string{addr}, Standalone: true}.Connect(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	create := func(path string, flags int32) {
		if _, err := session.Create(t.Context(), path, []byte("dear"), flags); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/app", "/app/config", "/app/lockbenchmark", "/app/lockbench:{", "/services"} {
		create(path, zk.FlagPersistent)
	}
	create("/services/1", zk.FlagEphemeral)
	create("/services/n-", zk.FlagEphemeral|zk.FlagSequence)
	var below func(path string) []string
	below = func(path string) []string {
		children, err := session.Children(t.Context(), path)
		if err != nil {
			return nil // it has gone meanwhile
		}
		var lines []string
		for _, child := range children {
			at := strings.TrimSuffix(path, "/") + "/" + child
			value, err := session.Get(t.Context(), at)
			if err != nil {
				continue
			}
			lines = append(lines, fmt.Sprintf("node %s = %q of transactions %d to %d, session %x", at, value.Data, value.Stat.Czxid, value.Stat.Mzxid, value.Stat.EphemeralOwner))
			lines = append(lines, below(at)...)
		}
		return lines
	}
	number := regexp.MustCompile(`0x[0-9a-f]+`)
	return usersServer{
		url: "zk://" + addr + "/app", nothing: "zk://127.0.0.1:1", strategies: "zookeeper",
		held: []string{":counter"}, alive: "node /app/lockbench:connections/",
		litter: func() string { create("/app/lockbench:litter", zk.FlagPersistent); return "/app/lockbench:litter" },
		all: func() []string {
			lines := below("/")
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "dump"); err != nil {
				t.Fatal(err)
			}
			sessions, err := io.ReadAll(conn)
			if err != nil || len(sessions) == 0 {
				t.Fatalf("%q, %v", sessions, err)
			}
			for _, id := range number.FindAllString(string(sessions), -1) {
				lines = append(lines, "session "+id)
			}
			slices.Sort(lines)
			return slices.Compact(lines)
		},
	}
}
