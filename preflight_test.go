package lockbench_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// rights runs the preflight of a plan and returns its finding about the rights.
func rights(t *testing.T, p lockbench.Plan) results.Symptom {
	t.Helper()
	found, _, err := lockbench.Preflight(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found, func(s results.Symptom) bool { return s.Name == "rights" })
	if i < 0 {
		t.Fatalf("the preflight has no finding about rights: %+v", found)
	}
	return found[i]
}

// onOneNode returns the names of the strategies that lock on a single Redis node.
func onOneNode() (names []string) {
	for _, s := range strategies.All() {
		if s.Info.OnRedis() && s.Info.Nodes == 1 && !s.Info.OnlyCounter {
			names = append(names, s.Info.Name)
		}
	}
	return names
}

// For a user without rights, the preflight must report every command that each strategy declares, which proves that it
// checks them all. For a user with the rights that lockbench list prints, it must find no trouble. It must leave no
// key.
func TestPreflightChecksEveryDeclaredRight(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	if err := client.Do(t.Context(), "ACL", "SETUSER", "poor", "on", ">secret").Err(); err != nil {
		t.Fatal(err)
	}
	poor := rights(t, plan(t, "redis://poor:secret@"+server.Addr, strings.Join(onOneNode(), ","), nil))
	for _, name := range onOneNode() {
		s, err := strategies.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		for _, line := range poor.Says {
			if strings.HasPrefix(line, name+" needs the right") {
				told = line + " "
			}
		}
		for _, command := range s.Info.Rights.Commands {
			if !strings.Contains(told, " +"+command+" ") {
				t.Errorf("%s needs %s, but the preflight reports: %s", name, command, told)
			}
		}
		all := "1 of 1 strategies could acquire and release a lock"
		enough := rights(t, plan(t, service(t, server, name), name, nil))
		if enough.State != results.Well || !slices.Equal(enough.Says, []string{all}) {
			t.Errorf("with the rights that list prints the preflight of %s reports %+v", name, enough)
		}
	}
	if keys := client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left %v", keys)
	}
}

// clumsy is a lock in which one operation always returns an error. The field fails names that operation.
type clumsy struct {
	closable
	fails string
}

func (c clumsy) failure(at string) error {
	if c.fails == at {
		return errors.New(at + " fails")
	}
	return nil
}

func (c clumsy) Acquire(context.Context, string) (strategies.Lease, error) {
	return c, c.failure("Acquire")
}
func (c clumsy) Release(context.Context) error { return c.failure("Release") }

// A lock that fails to acquire or to release must not count as usable: the preflight must report results.Trouble and
// quote the lock's error, and Run must return ErrConfig.
func TestPreflightRequiresAcquireAndRelease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, fails := range []string{"Acquire", "Release", "nothing"} {
		p := plan(t, server.URL(), "spin", nil)
		p.Strategies = append(p.Strategies, strategies.Unlisted(
			strategies.Info{Name: "clumsy", Capacity: 1, Nodes: 1, BlackBox: true},
			func(strategies.Config) (clumsy, error) { return clumsy{closable{new(atomic.Bool)}, fails}, nil }))
		found := rights(t, p)
		said := strings.Join(found.Says, "\n")
		if fails == "nothing" {
			if found.State != results.Well || !strings.HasPrefix(said, "2 of 2 strategies") {
				t.Errorf("a lock that does all: %+v", found)
			}
			continue
		}
		if found.State != results.Trouble || !strings.HasPrefix(said, "1 of 2 strategies") ||
			!strings.Contains(said, "clumsy could not") || !strings.Contains(said, fails+" fails") {
			t.Errorf("%s: %+v", fails, found)
		}
		if report, err := lockbench.Run(t.Context(), p); report != nil || !errors.Is(err, lockbench.ErrConfig) ||
			!strings.Contains(err.Error(), said) {
			t.Errorf("%s: the run ended with %v, %v", fails, report, err)
		}
	}
}

// A driver may declare arbitrary rights for its strategy. Even so, the preflight must not touch keys or channels
// without lockbench's prefix.
func TestPreflightTouchesOnlyOwnNames(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	if err := client.Set(t.Context(), "shop:cart", "dear", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	p := plan(t, server.URL(), "spin", nil)
	p.Strategies = []strategies.Variant{strategies.Unlisted(
		strategies.Info{Name: "hostile", Capacity: 1, Nodes: 1, BlackBox: true, Rights: strategies.Rights{
			Keys: []string{"shop:cart", "{key}"}, Channels: []string{"shop"},
			Commands: []string{"append", "del", "set", "pexpire", "incr", "flushall", "publish", "subscribe", "shutdown"},
		}},
		func(strategies.Config) (closable, error) { return closable{new(atomic.Bool)}, nil })}
	rights(t, p)
	all := fmt.Sprint(client.Keys(t.Context(), "*").Val(), client.Get(t.Context(), "shop:cart").Val())
	if all != "[shop:cart]dear" || client.TTL(t.Context(), "shop:cart").Val() < time.Minute {
		t.Errorf("it changed the server: %s", all)
	}
}

// Several generators need more rights than a single process. At least one generator must report every missing right.
// The other may instead report that the first one has ended.
func TestRightsOfGenerators(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, test := range []struct{ without, session, says string }{
		{"-time", "one", "--generators needs the right +time"},
		{"-getrange -time", "two", "--generators needs the rights +time +getrange"},
	} {
		address := service(t, server, "spin", append([]string{"+@all"}, strings.Fields(test.without)...)...)
		var both sync.WaitGroup
		var named atomic.Int32
		for index := range 2 {
			p := plan(t, address, "spin", nil)
			p.Generators = lockbench.Generators{Number: 2, Index: index, Session: test.session, Patience: time.Minute}
			both.Go(func() {
				report, err := lockbench.Run(t.Context(), p)
				switch {
				case report == nil && errors.Is(err, lockbench.ErrConfig) && strings.Contains(err.Error(), test.says):
					named.Add(1)
				case report != nil || !errors.Is(err, lockbench.ErrGenerator): // the other generator ended first
					t.Errorf("without %s generator %d ended with %v, %v", test.without, index, report, err)
				}
			})
		}
		if both.Wait(); named.Load() == 0 {
			t.Errorf("without %s no generator reports %q", test.without, test.says)
		}
	}
}
