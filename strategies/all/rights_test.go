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

// exercises are the checks of the suite in which a lock performs all operations of a run.
var exercises = []string{
	"acquire and release", "try-lock", "cancelled wait", "given-up waits", "dead holder", "extend", "flushed scripts",
	"lost answers", "idle keys",
}

// user is a user of Redis with certain rights only.
type user struct {
	name    string
	variant strategies.Variant
	admin   []*redis.Client // one a node
	nodes   []goredis.Node  // of the suite
}

// allow gives the user these rights and no others, and clears the log of refusals.
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

// refused returns the refusals of the servers since then.
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

// attempt runs all exercises with the user's lock until a command is refused.
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

// open opens a lock with the user's clients, which connect first.
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

// withClients closes its clients too.
type withClients struct {
	strategies.Locker
	clients []redis.UniversalClient
}

// Unwrap is for strategies.As.
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
	// aLock fits the names of all locks of the suite.
	aLock = tag + "locktest-????????????????:*-????????????????"
)

// rightsOf returns all rights that a user needs for a strategy, in a database other than 0.
func rightsOf(v strategies.Variant) []string {
	rules := v.Info().Rights.Rules(prefix)
	for _, command := range append(strategies.Connecting(), strategies.Selecting) {
		if !slices.Contains(rules, "+"+command) {
			rules = append(rules, "+"+command)
		}
	}
	return rules
}

// exercised are the strategies, with options that have them show all they do: a
// semaphore has one permit, and nobody waits for long for the dead.
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

// The rights that list prints for a strategy are enough for all its operations. In make others also: none of them is
// one too many, and the lock has no keys but those that its Info names.
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
		all.Go(func() { t.Run(v.Name(), func(t *testing.T) { enoughAndNoMore(t, v) }) })
	}
	all.Wait()
}

func enoughAndNoMore(t *testing.T, v strategies.Variant) {
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

// onlyKeys are rights for the keys with these names, and no others but those on which handoff and spin:release=delex
// try their commands in Prepare: they are not of a lock that anybody asks for, and expire.
func onlyKeys(names, rules []string) []string {
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return strings.HasPrefix(rule, "~") })
	rules = append(rules, "~"+tag+"locktest-????????????????::*")
	for _, name := range names {
		rules = append(rules, "~"+strings.ReplaceAll(name, "{key}", aLock))
	}
	return rules
}

// misses reports whether something is refused to a user who lacks one of the rights. A machine that stands still can
// keep a waiter from being one, so that it is looked for three times.
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

// Every channel has the lock's key in its name, so that a user can be kept to those of
// lockbench; but for the one by which Redis itself tells of changes.
func TestChannelsContainTheKey(t *testing.T) {
	for _, v := range exercised(t) {
		for _, channel := range v.Info().Rights.Channels {
			if !strings.Contains(channel, "{key}") && channel != "__redis__:invalidate" {
				t.Errorf("%s: a channel %s", v.Name(), channel)
			}
		}
	}
}
