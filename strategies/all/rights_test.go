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

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// user is a user of Redis who has some rights and no others.
type user struct {
	exercise
	name string
}

// allow gives the user these rights, takes all others, and forgets what was refused.
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

// refused is what the servers refused since then.
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

// attempt runs the exercise until it ends or something is refused.
func (u user) attempt(t *testing.T) (refused string, err error) {
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
	err = u.run(ctx)
	cancel()
	watch.Wait()
	return u.refused(t.Context()), err
}

// rightsOf are all that a user needs for a strategy, in a database other than 0.
func rightsOf(v strategies.Variant) []string {
	rules := v.Info().Rights.Rules("lockbench:")
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

// What list tells of a strategy's rights is enough for all it does, and none of them is
// one too many.
func TestRights(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // at the same time: they mostly wait
	for _, v := range exercised(t) {
		all.Go(func() { t.Run(v.Name(), func(t *testing.T) { enoughAndNoMore(t, v) }) })
	}
	all.Wait()
}

func enoughAndNoMore(t *testing.T, v strategies.Variant) {
	u := user{exercise: exercise{variant: v}, name: "service"}
	var options []*redis.UniversalOptions
	for range v.Info().Nodes {
		server := redistest.Start(t, "--acllog-max-len", "1000")
		o := *server.Node(t).Options
		o.DB = 3
		admin := redis.NewClient(o.Simple())
		t.Cleanup(func() { _ = admin.Close() })
		u.admin = append(u.admin, admin)
		o.Username, o.Password, o.ClientName, o.PoolSize = u.name, "secret", "lockbench:rights", 8
		options = append(options, &o)
	}
	u.connect = func() (nodes []goredis.Node, err error) {
		for _, o := range options {
			node := goredis.Node{Client: redis.NewUniversalClient(o), Options: o}
			nodes = append(nodes, node)
			if err := node.Client.Ping(t.Context()).Err(); err != nil {
				return nodes, err
			}
		}
		return nodes, nil
	}
	rules := rightsOf(v)
	if err := u.allow(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	suffice := func(what string) {
		trial.Calm(t, func(times int) (spoilt string) { // a quorum gives up on nodes that are slow for its TTL
			u.times = time.Duration(times)
			refused, err := u.attempt(t)
			if refused != "" {
				t.Errorf("%s do not suffice: %s refused, %v", what, refused, err)
			} else if err != nil {
				return err.Error()
			}
			return ""
		})
	}
	suffice(strings.Join(rules, " "))
	if err := u.allow(t.Context(), onlyKeys(v.Info().Keys, rules)); err != nil {
		t.Fatal(err)
	}
	suffice(fmt.Sprintf("the keys that Info.Keys names, %q,", v.Info().Keys))
	for _, right := range rules {
		if refused := u.without(t, right, rules); refused == "" {
			t.Errorf("nothing fails without %s", right)
		}
	}
}

// onlyKeys are rights for the keys with these names, and no others but those on which handoff tries its
// commands in Prepare: they are not of a lock that anybody asks for, and expire.
func onlyKeys(names, rules []string) []string {
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return strings.HasPrefix(rule, "~") })
	rules = append(rules, "~lockbench::*")
	for _, lock := range []string{exerciseKey, anotherKey} {
		for _, name := range names {
			rules = append(rules, "~"+strings.ReplaceAll(name, "{key}", "lockbench:"+lock))
		}
	}
	return rules
}

// without is what is refused to a user who lacks one of the rights. A machine that stands
// still can keep a waiter from being one, so that it is looked for five times, each more slowly.
func (u user) without(t *testing.T, right string, rules []string) (refused string) {
	t.Helper()
	for u.times = 1; u.times <= 16; u.times *= 2 {
		if err := u.allow(t.Context(), slices.DeleteFunc(slices.Clone(rules),
			func(r string) bool { return r == right })); err != nil {
			t.Fatal(err)
		}
		if refused, _ = u.attempt(t); refused != "" {
			break
		}
	}
	return refused
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
