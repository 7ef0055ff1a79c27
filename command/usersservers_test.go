package command_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// usersServer is a server that lockbench did not start and that contains data of other programs.
type usersServer struct {
	url        string
	strategies []string
	faults     [][]string // flags of further runs
	ttl        string     // --ttl of the runs that are killed
	doctor     []string   // texts that doctor must print
	// all returns one line for each key or other entry on the server and one for each connection.
	all func() []string
	// held is a text in the lines that appear once a client of lockbench has acquired a lock.
	held string
	// alive is a text in the lines that exist as long as the server considers a lockbench process connected. If it is "",
	// the server itself removes everything that a killed run held.
	alive string
	// fades is a text in the lines that remain when a run is killed, and that the server itself removes some time later.
	// It is "" if there are no such lines.
	fades string
	put   func(name string)
}

// usersServers lists, for each store, a function that starts a server. The server runs until the test ends.
var usersServers = []startsUsersServer{{"redis", usersRedis}}

type startsUsersServer struct {
	store string
	start func(*testing.T) usersServer
}

// nearMisses returns names that resemble lockbench's keys but belong to other programs.
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

// differences returns the lines that are in exactly one of the two lists.
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

func count(lines []string, part string) (n int) {
	for _, line := range lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// After a run that ended or was interrupted, the user's server must have the same content as before. The next run must
// report what a killed run left behind, and clean must remove it.
func TestForeignServerIsUnchanged(t *testing.T) {
	for _, users := range extent.Chosen(usersServers) {
		t.Run(users.store, func(t *testing.T) {
			t.Parallel()
			user := users.start(t)
			for _, miss := range nearMisses() {
				user.put(miss)
			}
			before := user.all()
			killedOne := false
			since := func() []string {
				return slices.DeleteFunc(differences(before, user.all()), func(line string) bool {
					return killedOne && user.fades != "" && strings.Contains(line, user.fades)
				})
			}
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
			// ends runs lockbench with args and checks that it returns the exit code want. says is a text that the output must
			// contain, and not is a text that it must not contain. Either is "" if there is no such text.
			ends := func(want int, says, not string, args ...string) {
				t.Helper()
				code, said, wrong := run(t, args...)
				all := said + wrong
				if code != want || !strings.Contains(all, says) || not != "" && strings.Contains(all, not) {
					t.Errorf("%q ended with %d:\n%s%s", args, code, said, wrong)
				}
			}
			// startHoldingRun starts a run and returns once a client holds a lock.
			startHoldingRun := func(strategies string) *process {
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

			interrupted := startHoldingRun(user.strategies[0])
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
				killed := startHoldingRun(strategy)
				// clean must not touch the keys of a running lockbench.
				lives := since()
				ends(command.ExitOK, "", "of dead runs", "clean", "-u", user.url)
				poll.Until(t, "the run has all that it had before clean", func() bool { // between two leases it has less
					return count(since(), user.held) >= count(lives, user.held)
				})
				killed.signal(os.Kill)
				killed.code()
				killedOne = true
				if user.alive == "" {
					same("the end of the killed run's sessions")
					ends(command.ExitOK, "", "of dead runs", "clean", "-u", user.url)
					continue
				}
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

// usersRedis starts a Redis and fills it as a user might: with keys with and without a TTL, users, functions and
// scripts.
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
		strategies: []string{"fair", "handoff"}, doctor: []string{"reachable ", "\nlimits ", "\nrights ", "\nfigures "},
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

// everythingOn returns lines that describe a Redis: its keys, settings, users and functions, whether it has the script
// whose hash is in the parameter script, and the connections of lockbench.
func everythingOn(t *testing.T, client redis.UniversalClient, script string) []string {
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
		// A lockbench run may have deleted a key since KEYS listed it, so a missing key is ignored.
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if dump.Err() == nil {
			lines = append(lines, fmt.Sprintf("key %q = %q until %v", key, dump.Val(), end.Val()))
		}
	}
	return lines
}
