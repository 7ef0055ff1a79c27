package command_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// usersServer is a server that somebody has, with things on it that are not lockbench's.
type usersServer struct {
	url        string
	strategies []string
	faults     [][]string // flags of further runs
	ttl        string     // of runs that are killed
	nothing    string     // the URL of a port on which nobody listens
	doctor     []string   // parts of what doctor says of it
	// all is everything that is on the server and who is connected to it, a line each,
	// sorted.
	all func() []string
	// held is part of lines that are there once a client of lockbench's has had a lock.
	held string
	// alive is part of the lines that are there as long as a lockbench counts as connected.
	alive string
	// litter puts something there, of which the name is returned.
	litter func() string
}

// usersSession is the name of a session. Somebody else's keys have names like those of its runs.
const usersSession = "cart"

// usersServers start a server of each store, until the test ends.
var usersServers = map[string]func(*testing.T) usersServer{
	"redis": usersRedis, "etcd": usersEtcd, "postgres": usersPostgres, "zookeeper": usersZooKeeper,
}

// anyStore is what doctor says of a store beside Redis.
var anyStore = []string{
	"\nserver ", "\nrights ", "\nlimits ", "\ncounters ", "\nmachine ", "strategies could acquire and release",
}

// nearMisses are that many names that look like those of lockbench's keys for these patterns, and are somebody else's.
func nearMisses(patterns []string, many int) []string {
	misses := []string{
		"shop:lockbench:{cart:1}:items", "mylockbench:{a:b}", "lockbench:{team:1}:cart",
		"app:{cart:1:items}", "{cart:2:x}", "orders:{cart:1:2026}:line",
	}
	known := map[string]bool{}
	add := func(names ...string) {
		for _, name := range names {
			if !known[name] {
				known[name] = true
				misses = append(misses, name)
			}
		}
	}
	for n := 0; ; n++ {
		id := []string{store.SessionID(usersSession), "a1b2c3d4"}[n%2]
		number := fmt.Sprintf(":%d:%d", n%5, n/5)
		lock := "lockbench:{" + id + number + "}"
		for _, pattern := range patterns {
			known[strings.ReplaceAll(pattern, "{key}", lock)] = true // it is ours
		}
		for _, pattern := range patterns {
			of := func(lock string) string { return strings.ReplaceAll(pattern, "{key}", lock) }
			key := of(lock)
			add("shop:"+key, "my"+key, " "+key, key+":items", key+":", key+"\n", key+" ", key+key, key+"}",
				key[1:], key[:len(key)-1], strings.ToUpper(key), strings.Replace(key, "lockbench", "Lockbench", 1))
			for _, other := range []string{
				"", "cart", "team", "12345678", "1234567890", id[:7], id + "0", strings.ToUpper(id), "g" + id[1:], "1" +
					id[1:],
			} {
				add(of("lockbench:{" + other + number + "}"))
			}
			for _, near := range []string{
				"lockbench:{ID}", "lockbench:{IDN:0}", "lockbench:{ID:01:0}", "lockbench:{ID:x:0}", "lockbench:{{IDN}}",
				"lockbench:(IDN)", "lockbench:IDN", "lockbench:{IDN", "lockbench{IDN}", "{lockbench:IDN}", "app:{IDN}",
				"{IDN}",
			} {
				add(of(strings.NewReplacer("ID", id, "N", number).Replace(near)))
			}
		}
		if len(misses) >= many {
			return misses[:many]
		}
	}
}

// usersRedis has 10,000 keys of all types, some with a TTL, users, functions and scripts.
func usersRedis(t *testing.T) usersServer {
	server := redistest.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	patterns := []string{"{key}:counter", "{key}:counter:floor"}
	var every []string
	for _, s := range strategies.All() {
		if s.Info.OnRedis() {
			patterns = append(patterns, s.Info.Keys...)
		}
		if s.Info.OnRedis() && s.Info.Nodes == 1 {
			every = append(every, s.Info.Name)
		}
	}
	slices.Sort(patterns)
	pipe := client.Pipeline()
	for n, key := range nearMisses(slices.Compact(patterns), 10_000) {
		switch n % 7 {
		case 0:
			pipe.Set(ctx, key, "dear", 0)
		case 1:
			pipe.RPush(ctx, key, "a", "b")
		case 2:
			pipe.HSet(ctx, key, "field", "dear")
		case 3:
			pipe.SAdd(ctx, key, "a", "b")
		case 4:
			pipe.ZAdd(ctx, key, redis.Z{Score: 1, Member: "a"})
		case 5:
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"field", "dear"}})
		case 6:
			pipe.PFAdd(ctx, key, "a")
		}
		if n%3 == 0 {
			pipe.PExpire(ctx, key, time.Hour)
		}
	}
	script := pipe.ScriptLoad(ctx, "return 'dear'")
	pipe.FunctionLoad(ctx, "#!lua name=shop\nredis.register_function('dear', function() return 1 end)")
	pipe.Do(ctx, "ACL", "SETUSER", "shop", "on", ">secret", "~shop:*", "+get")
	pipe.ConfigSet(ctx, "notify-keyspace-events", "Kx")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	u := usersServer{
		url: server.URL(), nothing: "redis://127.0.0.1:1", ttl: "10m", // so that no key expires before clean
		strategies: []string{"fair", "handoff"}, doctor: []string{"\nrights ", "\nlimits ", "\nmachine "},
		faults: [][]string{{
			"--fault", "holder-crash:at=50ms", "--fault", "kill-subscribers:at=100ms", "--allow-faults-on-my-server",
		}},
		held: ":counter\" ", alive: "client lockbench:",
		litter: func() string {
			if err := client.Set(context.Background(), "lockbench:litter", "", 0).Err(); err != nil {
				t.Fatal(err)
			}
			return "lockbench:litter"
		},
		all: func() []string { return everythingOn(t, client, script.Val()) },
	}
	if os.Getenv("LOCKBENCH_SOAK") != "" {
		u.strategies = every
	}
	return u
}

// everythingOn is all that a Redis has, the clients of lockbench among it.
func everythingOn(t *testing.T, client *redis.Client, script string) []string {
	t.Helper()
	ctx := t.Context()
	pipe := client.Pipeline()
	config, users, functions := pipe.ConfigGet(ctx, "*"), pipe.Do(ctx, "ACL", "LIST"), pipe.FunctionDump(ctx)
	scripts, clients, keys := pipe.ScriptExists(ctx, script), pipe.ClientList(ctx), pipe.Keys(ctx, "*")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		fmt.Sprint("users ", users.Val()), fmt.Sprintf("functions %q", functions.Val()),
		fmt.Sprint("scripts ", scripts.Val()),
	}
	for name, value := range config.Val() {
		lines = append(lines, fmt.Sprintf("config %s = %q", name, value))
	}
	for connected := range replies.Clients(clients.Val()) {
		if strings.HasPrefix(connected["name"], "lockbench:") {
			lines = append(lines, "client "+connected["name"])
		}
	}
	dumps, ends := map[string]*redis.StringCmd{}, map[string]*redis.DurationCmd{}
	for _, key := range keys.Val() {
		dumps[key], ends[key] = pipe.Dump(ctx, key), pipe.PExpireTime(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) { // a run's key may be gone meanwhile
		t.Fatal(err)
	}
	for key, dump := range dumps {
		if dump.Err() == nil {
			lines = append(lines, fmt.Sprintf("key %q = %q until %v", key, dump.Val(), ends[key].Val()))
		}
	}
	slices.Sort(lines)
	return lines
}

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
	for _, key := range nearMisses([]string{"{key}/6", "{key}:counter"}, 500) {
		put(key)
	}
	granted, err := client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	put("services/1", clientv3.WithLease(granted.ID))
	return usersServer{
		url: "etcd://" + etcd.Endpoints[0], nothing: "etcd://127.0.0.1:1",
		strategies: []string{"etcd", "etcd:watch=next"}, ttl: "5s", doctor: anyStore,
		held: ":counter =", alive: "key lockbench/connected/",
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
				lines = append(lines, fmt.Sprintf("key %s = %q of revisions %d to %d, lease %x", kv.Key, kv.Value,
					kv.CreateRevision, kv.ModRevision, kv.Lease))
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
	config := instance.Nodes()[0].(*pgx.ConnConfig)
	delete(config.RuntimeParams, "search_path") // of the session that started it
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
		CREATE SCHEMA lockbench_session_12345678; CREATE TABLE lockbench_session_12345678.lockbench_counter (n int);
		ALTER SCHEMA lockbench_session_12345678 OWNER TO bench;
		CREATE SCHEMA "lockbench_session_A1B2C3D4" AUTHORIZATION bench;
		CREATE SCHEMA lockbench_session_a1b2c3d4_old AUTHORIZATION bench;
		CREATE SCHEMA my_lockbench_session_a1b2c3d4 AUTHORIZATION bench;
		CREATE SCHEMA lockbench_session_mine; CREATE TABLE lockbench_session_mine.dear (n int);
		ALTER SCHEMA lockbench_session_mine OWNER TO bench;
		CREATE SCHEMA lockbench; CREATE TABLE lockbench.lockbench_lock (key bytea PRIMARY KEY);
		INSERT INTO lockbench.lockbench_lock VALUES ('mine');
		ALTER SCHEMA lockbench OWNER TO bench;
		SELECT pg_advisory_lock(42)`)
	address := func(at string) string {
		return (&url.URL{
			Scheme: "postgres", User: url.UserPassword("bench", "a/b:c"), Host: at, Path: "/postgres",
			RawQuery: "sslmode=disable",
		}).String()
	}
	return usersServer{
		url: address(server.Describe().Address), nothing: address("127.0.0.1:1"),
		strategies: []string{"postgres", "postgres:mode=row"}, ttl: "5s", doctor: anyStore,
		held: "lockbench_counter of", alive: "session lockbench:",
		litter: func() string { exec(eye, "CREATE SEQUENCE litter"); return "litter" },
		all: func() []string {
			rows, err := eye.Query(t.Context(), `SELECT 'database ' || datname FROM pg_database
				UNION ALL SELECT 'role ' || rolname FROM pg_roles
				UNION ALL SELECT format('schema %s of %s', nspname, nspowner) FROM pg_namespace
				UNION ALL SELECT format('relation %s %s of %s', relnamespace::regnamespace, relname, oid) FROM pg_class
				UNION ALL SELECT format('setting %s %s %s', setdatabase, setrole, setconfig) FROM pg_db_role_setting
				UNION ALL SELECT 'extension ' || extname FROM pg_extension
				UNION ALL SELECT format('%s functions', count(*)) FROM pg_proc
				UNION ALL SELECT 'row ' || n FROM dear
				UNION ALL SELECT format('row %s', key) FROM lockbench.lockbench_lock
				UNION ALL SELECT format('advisory lock of %s', application_name)
					FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
				UNION ALL SELECT format('prepared %s', gid) FROM pg_prepared_xacts
				UNION ALL SELECT format('session %s of %s', application_name, usename)
					FROM pg_stat_activity WHERE backend_type = 'client backend' ORDER BY 1`)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			// The connections that stand for who started the server are not the user's.
			return slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "session ") && strings.HasSuffix(line, " of "+config.User) &&
					!strings.HasPrefix(line, "session service")
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
	for _, path := range []string{"/app", "/app/config", "/app/lockbenchmark", "/services"} {
		create(path, zk.FlagPersistent)
	}
	for _, key := range nearMisses([]string{"{key}", "{key}:counter"}, 200) {
		create("/app/"+gozk.Name(key), zk.FlagPersistent)
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
	number := regexp.MustCompile(`0x[0-9a-f]+`)
	return usersServer{
		url: "zk://" + addr + "/app", nothing: "zk://127.0.0.1:1",
		strategies: []string{"zookeeper"}, ttl: "5s", doctor: anyStore,
		held: ":counter =", alive: "node /app/lockbench:connections/",
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
