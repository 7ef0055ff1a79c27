package command_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// usersServer is a server that somebody has, with things on it that are not lockbench's.
type usersServer struct {
	url        string
	strategies []string
	faults     [][]string // flags of further runs
	ttl        string     // of runs that are killed
	doctor     []string   // parts of what doctor says of it
	// all is everything that is on the server and who is connected to it, a line each.
	all func() []string
	// held is part of lines that are there once a client of lockbench's has had a lock.
	held string
	// alive is part of the lines that are there as long as a lockbench counts as connected.
	alive string
	// put puts something there.
	put func(name string)
}

// usersServers start a server of each store, until the test ends.
var usersServers = map[string]func(*testing.T) usersServer{
	"redis": usersRedis, "etcd": usersEtcd, "postgres": usersPostgres, "zookeeper": usersZooKeeper,
}

// nearMisses are names that look like those of lockbench's keys, and are somebody else's.
func nearMisses() []string {
	misses := []string{"shop:lockbench:{cart:1}:items", "lockbench:{team:1}:cart", "{cart:2:x}", "lockbenchmark/config"}
	for _, id := range []string{store.NewRunID(), "a1b2c3d4"} {
		lock := "lockbench:{" + id + ":1:0}"
		misses = append(misses, "shop:"+lock, "my"+lock, " "+lock, lock+":items", lock+lock, lock+"}", lock[1:],
			lock[:len(lock)-1], strings.ToUpper(lock), "lockbench:{"+id+"}", "lockbench:{"+id+":01:0}",
			"lockbench:{"+id+"0:1:0}", "app:{"+id+":1:0}", lock+":counter:items")
	}
	return misses
}

// differences are the lines that one of two lists has and the other has not.
func differences(before, after []string) []string {
	var all []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			all = append(all, "gone: "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			all = append(all, "new: "+line)
		}
	}
	return all
}

// count says how many lines have a part.
func count(lines []string, part string) (n int) {
	for _, line := range lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// A user's server has after a run what it had before, however the run ends. The next run names what a
// killed run left, and clean removes it.
func TestAUsersServerStaysAsItWas(t *testing.T) {
	for _, name := range extent.Chosen([]string{"redis", "postgres", "etcd", "zookeeper"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := usersServers[name](t)
			for _, miss := range nearMisses() {
				user.put(miss)
			}
			before := user.all()
			since := func() []string { return differences(before, user.all()) }
			same := func(after string) {
				t.Helper()
				var found []string
				for end := time.Now().Add(drive.Bound); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					if found = since(); len(found) == 0 {
						return
					}
				}
				t.Fatalf("after %s it is not what it was:\n%s", after, strings.Join(found[:min(len(found), 20)], "\n"))
			}
			flags := func(strategies string, more ...string) []string {
				return append(more, "-u", user.url, "-s", strategies, "--work", "counter", "-c", "4",
					"--think", "2ms", "--instances", "2", "-w", "0s", "--no-baselines")
			}
			// ends has a command line end with a code and say something, or not.
			ends := func(want int, says, not string, args ...string) {
				t.Helper()
				code, said, wrong := run(t, args...)
				all := said + wrong
				if code != want || !strings.Contains(all, says) || not != "" && strings.Contains(all, not) {
					t.Errorf("%q ended with %d:\n%s%s", args, code, said, wrong)
				}
			}
			// amid is a run that has begun.
			amid := func(strategies string) *process {
				t.Helper()
				had := count(since(), user.held)
				p := start(t, "lockbench", flags(strategies, "-d", "40s", "--ttl", user.ttl)...)
				p.await("[1/")
				poll.Until(t, "a client has had the lock", func() bool { return count(since(), user.held) > had })
				return p
			}

			for _, more := range append([][]string{nil}, user.faults...) {
				whole := start(t, "lockbench",
					flags(strings.Join(user.strategies, ","), append(more, "-d", "300ms")...)...)
				if code := whole.code(); code != "0" && code != "112" { // the machine may be too busy to measure on
					t.Errorf("a run with %q ended with %s:\n%s", more, code, &whole.said)
				}
				same(fmt.Sprintf("a run with %q", more))
			}

			interrupted := amid(user.strategies[0])
			interrupted.signal(syscall.SIGINT)
			if code := interrupted.code(); code != "105" {
				t.Errorf("a run that was interrupted ended with %s:\n%s", code, &interrupted.said)
			}
			same("an interrupt")

			code, said, wrong := run(t, "doctor", "-u", user.url)
			if code != command.ExitOK || strings.Contains(said, "trouble") {
				t.Errorf("doctor ended with %d:\n%s%s", code, said, wrong)
			}
			for _, line := range user.doctor {
				if !strings.Contains(said, line) {
					t.Errorf("doctor says nothing of %q:\n%s", line, said)
				}
			}
			same("doctor")

			for _, strategy := range user.strategies {
				killed := amid(strategy)
				// What a lockbench that lives uses is left alone.
				lives := since()
				ends(command.ExitOK, "", "of dead runs", "clean", "-u", user.url)
				if count(since(), user.held) < count(lives, user.held) {
					t.Errorf("clean removed what a run uses: %q", lives)
				}
				killed.signal(os.Kill)
				killed.code()
				poll.Until(t, "the server knows that it is dead", func() bool {
					return count(since(), user.alive) == 0
				})
				left := since()
				if count(left, "lockbench") == 0 {
					t.Fatalf("nothing was left to be removed: %q", left)
				}
				_, said, wrong := run(t, flags(strategy, "-q", "-n", "10")...)
				if !strings.Contains(said, "killed runs (") {
					t.Errorf("the next run says nothing of what is left: %s%s", said, wrong)
				}
				if now := since(); count(now, user.held) != count(left, user.held) {
					t.Errorf("the next run changed what is left:\n%s", strings.Join(differences(left, now), "\n"))
				}
				ends(command.ExitOK, "of dead runs", "", "clean", "-u", user.url)
				same("clean")
			}
			ends(command.ExitOK, "", "of dead runs", "clean", "-u", user.url)

			user.put("lockbench:litter")
			if found := since(); len(found) != 1 || !strings.Contains(found[0], "litter") {
				t.Errorf("a leftover that was planted is not found: %q", found)
			}
		})
	}
}

// Where nothing listens, clean and doctor say so.
func TestNothingListensAtAUsersAddress(t *testing.T) {
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

// anyStore is what doctor says of a store beside Redis.
var anyStore = []string{
	"reachable ", "\nserver ", "\nrights ", "\nlimits ", "\ncounters ", "\nmachine ",
	"strategies could acquire and release",
}

// usersRedis has keys with and without a TTL, users, functions and scripts.
func usersRedis(t *testing.T) usersServer {
	server := redistest.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	pipe := client.Pipeline()
	pipe.Set(ctx, "dear", "dear", time.Hour)
	pipe.RPush(ctx, "list", "a", "b")
	script := pipe.ScriptLoad(ctx, "return 'dear'")
	pipe.FunctionLoad(ctx, "#!lua name=shop\nredis.register_function('dear', function() return 1 end)")
	pipe.Do(ctx, "ACL", "SETUSER", "shop", "on", ">secret", "~shop:*", "+get")
	pipe.ConfigSet(ctx, "notify-keyspace-events", "Kx")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	u := usersServer{
		url: server.URL(), ttl: "10m", // so that no key expires before clean
		strategies: []string{"fair", "handoff"}, doctor: []string{"reachable ", "\nrights ", "\nlimits ", "\nmachine "},
		faults: [][]string{{
			"--fault", "holder-crash:at=50ms", "--fault", "kill-subscribers:at=100ms", "--allow-faults-on-my-server",
		}},
		held: ":counter\" ", alive: "client lockbench:",
		put: func(name string) {
			if err := client.Set(ctx, name, "dear", 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
		all: func() []string { return everythingOn(t, client, script.Val()) },
	}
	if os.Getenv("LOCKBENCH_SOAK") != "" {
		u.strategies = nil
		for _, s := range strategies.All() {
			if s.Info.OnRedis() && s.Info.Nodes == 1 {
				u.strategies = append(u.strategies, s.Info.Name)
			}
		}
	}
	return u
}

// everythingOn is all that a Redis has, the clients of lockbench among it.
func everythingOn(t *testing.T, client goredis.Client, script string) []string {
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
	for _, key := range keys.Val() {
		dump, end := pipe.Dump(ctx, key), pipe.PExpireTime(ctx, key)
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) { // a run's key may be gone meanwhile
			t.Fatal(err)
		}
		if dump.Err() == nil {
			lines = append(lines, fmt.Sprintf("key %q = %q until %v", key, dump.Val(), end.Val()))
		}
	}
	return lines
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
		doctor: anyStore, held: ":counter =", alive: "key lockbench/connected/",
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

// everythingIn selects all that a database has.
const everythingIn = `SELECT 'database ' || datname FROM pg_database
	UNION ALL SELECT 'role ' || rolname FROM pg_roles
	UNION ALL SELECT format('schema %s of %s', nspname, nspowner) FROM pg_namespace
	UNION ALL SELECT format('relation %s %s of %s', relnamespace::regnamespace, relname, oid) FROM pg_class
	UNION ALL SELECT format('setting %s %s %s', setdatabase, setrole, setconfig) FROM pg_db_role_setting
	UNION ALL SELECT format('%s functions', count(*)) FROM pg_proc
	UNION ALL SELECT 'row ' || n FROM lockbench_session_mine.dear
	UNION ALL SELECT format('row %s', key) FROM lockbench.lockbench_lock
	UNION ALL SELECT format('advisory lock of %s', application_name)
		FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
	UNION ALL SELECT format('session %s of %s', application_name, usename)
		FROM pg_stat_activity WHERE backend_type = 'client backend'`

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
		CREATE SCHEMA lockbench_session_12345678; CREATE TABLE lockbench_session_12345678.lockbench_counter (n int);
		ALTER SCHEMA lockbench_session_12345678 OWNER TO bench;
		CREATE SCHEMA "lockbench_session_A1B2C3D4" AUTHORIZATION bench;
		CREATE SCHEMA lockbench_session_a1b2c3d4_old AUTHORIZATION bench;
		CREATE SCHEMA my_lockbench_session_a1b2c3d4 AUTHORIZATION bench;
		CREATE SCHEMA lockbench_session_mine; CREATE TABLE lockbench_session_mine.dear (n int);
		INSERT INTO lockbench_session_mine.dear VALUES (7), (8);
		ALTER SCHEMA lockbench_session_mine OWNER TO bench;
		CREATE SCHEMA lockbench; CREATE TABLE lockbench.lockbench_lock (key bytea PRIMARY KEY);
		INSERT INTO lockbench.lockbench_lock VALUES ('mine');
		ALTER SCHEMA lockbench OWNER TO bench;
		SELECT pg_advisory_lock(42)`)
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword("bench", "a/b:c"), Host: server.Describe().Address,
		Path: "/postgres", RawQuery: "sslmode=disable",
	}
	return usersServer{
		url: address.String(), strategies: []string{"postgres", "postgres:mode=row"}, ttl: "5s", doctor: anyStore,
		held: "lockbench_counter of", alive: "session lockbench:",
		put: func(name string) { exec(eye, "CREATE SEQUENCE "+pgx.Identifier{name}.Sanitize()) },
		all: func() []string {
			rows, err := eye.Query(t.Context(), everythingIn)
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
	return usersServer{
		url: "zk://" + addr + "/app", strategies: []string{"zookeeper"}, ttl: "5s", doctor: anyStore,
		held: ":counter =", alive: "node /app/lockbench:connections/",
		put: func(name string) { create("/app/"+gozk.Name(name), zk.FlagPersistent) },
		all: func() []string { return below("/") },
	}
}
