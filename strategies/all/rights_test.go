package all_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// exercises are the conformance checks that together make a lock perform all operations of a run.
var exercises = []string{
	"acquire and release", "try-lock", "cancelled wait", "given-up waits", "dead holder", "extend", "flushed scripts",
	"lost answers", "idle keys",
}

// user is a restricted Redis user. The test runs one strategy with the rights of this user.
type user struct {
	name    string
	variant strategies.Variant
	admin   []*redis.Client // one for each node
	nodes   []goredis.Node  // that the suite gets
}

// allow gives the user exactly the rights in rules, and deletes all keys and the ACL log of every server.
func (u user) allow(ctx context.Context, rules []string) error {
	args := []any{"ACL", "SETUSER", u.name, "reset", "on", ">secret"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	for _, admin := range u.admin {
		if err := admin.FlushAll(ctx).Err(); err != nil {
			return err
		}
		if err := admin.Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("%v: %w", args, err)
		}
		if err := admin.Do(ctx, "ACL", "LOG", "RESET").Err(); err != nil {
			return err
		}
	}
	return nil
}

// refused returns the entries of the servers' ACL logs since the last call of allow, such as "command get"; "" means
// that no server refused anything.
func (u user) refused(ctx context.Context) string {
	var all []string
	for _, admin := range u.admin {
		entries, err := admin.Do(ctx, "ACL", "LOG").Slice()
		if err != nil {
			continue // the test is over
		}
		for _, entry := range entries {
			fields, _ := entry.(map[any]any)
			all = append(all, fmt.Sprint(fields["reason"], " ", fields["object"]))
		}
	}
	return strings.Join(all, ", ")
}

// attempt runs the exercises with the user's rights until a server refuses a command. It returns the result of
// u.refused.
func (u user) attempt(t *testing.T) (refused string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			if u.refused(ctx) != "" {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	info := u.variant.Info()
	info.Persistent = slices.Clone(info.Persistent)
	for i, key := range info.Persistent {
		info.Persistent[i] = strings.ReplaceAll(key, "{key}", tag+"{key}")
	}
	fixture := locktest.Fixture{
		Open: u.open, Nodes: func() []goredis.Node { return u.nodes }, Patience: 2 * time.Second,
	}
	for _, check := range locktest.Checks() {
		if slices.Contains(exercises, check.Name) {
			check.Judge(ctx, fixture, info)
		}
	}
	if counter, err := u.open(goredis.Config{Nodes: u.nodes, TTL: time.Minute, Callers: 1}); err == nil {
		if i, ok := strategies.As[strategies.Incrementer](counter); ok {
			_ = i.Increment(ctx, strings.ReplaceAll(aLock, "?", "0"))
		}
		_ = counter.Close()
	}
	cancel()
	watch.Wait()
	return u.refused(t.Context())
}

// open opens the strategy with new clients of the restricted user. Each client connects before the lock sends its first
// command.
func (u user) open(c goredis.Config) (strategies.Locker, error) {
	var clients []redis.UniversalClient
	c.Nodes, c.Prefix = slices.Clone(c.Nodes), tag+c.Prefix
	for i, node := range c.Nodes {
		o := *node.Options
		o.Username, o.Password, o.ClientName, o.PoolSize = u.name, "secret", "lockbench:rights", 8
		client := redis.NewUniversalClient(&o)
		client.Ping(context.Background())
		clients = append(clients, client)
		c.Nodes[i] = goredis.Node{Client: client, Options: &o}
	}
	locker, err := goredis.Open(u.variant, c)
	return withClients{locker, clients}, err
}

// withClients is a Locker whose Close also closes its Redis clients.
type withClients struct {
	strategies.Locker
	clients []redis.UniversalClient
}

// Unwrap lets strategies.As find the capabilities of the wrapped Locker.
func (w withClients) Unwrap() strategies.Locker { return w.Locker }

func (w withClients) Close() error {
	err := w.Locker.Close()
	for _, client := range w.clients {
		_ = client.Close()
	}
	return err
}

const (
	prefix = "lockbench:" // of all keys, as in a run
	tag    = prefix + "{rights}"
	// aLock is a pattern that matches the names of all locks in the suite.
	aLock = tag + "locktest-????????????????:*-????????????????"
)

// rightsOf returns the ACL rules for the user of a strategy: the rules in its Info, the rules for every connection, and
// the right to SELECT, because the test uses database 3.
func rightsOf(v strategies.Variant) []string {
	rules := v.Info().Rights.Rules(prefix)
	for _, command := range append(strategies.Connecting(), strategies.Selecting) {
		if !slices.Contains(rules, "+"+command) {
			rules = append(rules, "+"+command)
		}
	}
	return rules
}

// exercised returns every strategy on Redis, with options that make the exercises send all commands of the strategy: a
// semaphore has one permit, and fair skips a dead waiter after 100 ms.
func exercised(t *testing.T) []strategies.Variant {
	t.Helper()
	var all []strategies.Variant
	add := func(name string) {
		variants, err := strategies.ParseVariants(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, variants...)
	}
	for _, s := range strategies.All() {
		if s.Info.Store != "" {
			continue
		}
		name := s.Info.Name
		for _, o := range s.Options() {
			switch o.Name {
			case "permits":
				name += ":permits=1"
			case "wait-timeout":
				if s.Info.Name == "fair" {
					name += ":wait-timeout=100ms"
				}
			}
		}
		if s.Info.Nodes > 0 {
			add(name)
		}
	}
	add("semaphore:permits=1,expirable=true")
	add("gated:spin")
	return all
}

// The rights that "lockbench list" prints for a strategy must be enough for all its operations. With make others, the
// test also requires that each right is necessary, and that the lock uses only the keys in Info.Keys.
func TestRights(t *testing.T) {
	t.Parallel()
	variants := exercised(t)
	known, err := redistest.Start(t).Client(t).Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if known["delifeq"] != nil || known["delex"] != nil { // older servers refuse it
		more, err := strategies.ParseVariants("spin:release=delex")
		if err != nil {
			t.Fatal(err)
		}
		variants = append(variants, more...)
	}
	var all sync.WaitGroup // at the same time: they mostly wait
	for _, v := range variants {
		all.Go(func() { t.Run(v.Name(), func(t *testing.T) { rightsAreExact(t, v) }) })
	}
	all.Wait()
}

func rightsAreExact(t *testing.T, v strategies.Variant) {
	u := user{variant: v, name: "service"}
	for range v.Info().Nodes {
		server := redistest.Start(t, "--acllog-max-len", "1000")
		o := *server.Node(t).Options
		o.DB = 3
		u.nodes = append(u.nodes, goredis.Node{Options: &o})
		admin := redis.NewClient(o.Simple())
		t.Cleanup(func() { _ = admin.Close() })
		u.admin = append(u.admin, admin)
	}
	suffice := func(what string, rules []string) {
		if err := u.allow(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
		if refused := u.attempt(t); refused != "" {
			t.Errorf("%s do not suffice: %s refused", what, refused)
		}
	}
	rules := rightsOf(v)
	known, err := u.admin[0].Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range v.Info().Rights.Newer {
		if known[command] != nil {
			rules = append(rules, "+"+command)
		}
	}
	suffice(strings.Join(rules, " "), rules)
	if !extent.More() { // it takes a run of the lock for each right
		return
	}
	suffice(fmt.Sprintf("the keys that Info.Keys names, %q,", v.Info().Keys), onlyKeys(v.Info().Keys, rules))
	for _, right := range rules {
		if !u.misses(t, right, rules) {
			t.Errorf("nothing fails without %s", right)
		}
	}
}

// onlyKeys returns rules with the keys in names instead of their key patterns. It also allows the keys on which handoff
// and spin:release=delex try their commands in Prepare. These keys belong to no lock, and they expire.
func onlyKeys(names, rules []string) []string {
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return strings.HasPrefix(rule, "~") })
	rules = append(rules, "~"+tag+"locktest-????????????????::*")
	for _, name := range names {
		rules = append(rules, "~"+strings.ReplaceAll(name, "{key}", aLock))
	}
	return rules
}

// misses reports whether a server refuses a command if the user has all rights in rules except right. It makes up to
// three attempts: on a stalled machine it can happen that no client waits, and then no client sends the commands of a
// waiter.
func (u user) misses(t *testing.T, right string, rules []string) bool {
	t.Helper()
	for range 3 {
		if err := u.allow(t.Context(), slices.DeleteFunc(slices.Clone(rules),
			func(r string) bool { return r == right })); err != nil {
			t.Fatal(err)
		}
		if u.attempt(t) != "" {
			return true
		}
	}
	return false
}

// Every channel must have the lock's key in its name, so that ACL rules can limit a user to lockbench's channels. The
// exception is __redis__:invalidate, on which Redis itself announces changed keys.
func TestChannelsContainTheKey(t *testing.T) {
	for _, v := range exercised(t) {
		for _, channel := range v.Info().Rights.Channels {
			if !strings.Contains(channel, "{key}") && channel != "__redis__:invalidate" {
				t.Errorf("%s: a channel %s", v.Name(), channel)
			}
		}
	}
}
