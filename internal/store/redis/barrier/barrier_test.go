package barrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

func generators(number, index int) Generators {
	return Generators{
		Session: "test", Number: number, Index: index, Patience: 5 * time.Second, Seed: int64(index + 10),
		Settings: map[string]string{"--clients": "5"},
	}
}

func join(t *testing.T, server *redistest.Server, of Generators) *Member {
	t.Helper()
	m, err := Join(t.Context(), server.Client(t), of)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// each calls do for all members at the same time, and waits for all calls.
func each(members []*Member, do func(i int, m *Member)) {
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { do(i, m) })
	}
	all.Wait()
}

// met returns the members of a new session of this number of generators, which have all passed one barrier.
func met(t *testing.T, server *redistest.Server, number int) (members []*Member) {
	t.Helper()
	for i := range number {
		members = append(members, join(t, server, generators(number, i)))
	}
	each(members, func(_ int, m *Member) {
		if _, _, err := m.Meet(t.Context(), []byte("x")); err != nil {
			t.Error(err)
		}
	})
	return members
}

// agreed returns the run ID on which the members agree. It fails the test if they do not.
func agreed(t *testing.T, members []*Member) string {
	t.Helper()
	ids := make([]string, len(members))
	each(members, func(i int, m *Member) {
		var err error
		if ids[i], err = m.Agree(t.Context()); err != nil || !store.IsRunID(ids[i]) {
			t.Errorf("generator %d: %q, %v", m.Index, ids[i], err)
		}
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("they have the IDs %q", ids)
		}
	}
	return ids[0]
}

// Each generator contributes a random part to the run ID. The test forges the settings in Redis, so that they contain
// the ID of another run. The members must agree on an ID that differs from the forged one. If a generator's part
// changes afterwards, the session must end.
func TestKeysCannotChooseRunID(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	const victim = "abcdef01"
	forged, err := json.Marshal(agreement{victim, 9, generators(2, 0).Settings})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{victim: true}
	for range 3 {
		if err := client.Set(t.Context(), generators(2, 0).settingsKey(), forged, 0).Err(); err != nil {
			t.Fatal(err)
		}
		members := []*Member{join(t, server, generators(2, 0)), join(t, server, generators(2, 1))}
		id := agreed(t, members)
		if seen[id] || strings.HasPrefix(id, victim) {
			t.Errorf("the run ID is %s", id)
		}
		seen[id] = true
		state := members[1].state
		state.nonce = victim
		if err := client.Set(t.Context(), members[1].key(1), state.String(), life).Err(); err != nil {
			t.Fatal(err)
		}
		_, _, err := members[0].Meet(t.Context(), []byte("x"))
		if lost, is := errors.AsType[*Lost](err); !is || lost.Index != 1 || lost.Why != "was replaced by another generator" {
			t.Errorf("a generator whose part of the ID changed: %v", err)
		}
		each(members, func(_ int, m *Member) { m.Leave(t.Context()) })
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A second generator joins while eight goroutines of the first read the states. A call that has not seen it yet may
// return after one that has. The first generator must not take it for dead.
func TestConcurrentLooks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for n := range 50 {
		of := generators(2, 0)
		of.Session = fmt.Sprint("looks", n)
		first := join(t, server, of)
		of.Index = 1
		var looking sync.WaitGroup
		for range 8 {
			looking.Go(func() {
				for range 5 {
					if _, err := first.readStates(t.Context()); err != nil {
						t.Errorf("session %d: %v", n, err)
					}
				}
			})
		}
		second := join(t, server, of)
		looking.Wait()
		each([]*Member{first, second}, func(_ int, m *Member) { m.Leave(t.Context()) })
	}
}

// All generators must get the same start, within the uncertainty that they report. Generator 0 must get all records,
// and the session must leave no keys.
func TestGeneratorsStartTogether(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	for _, key := range []string{"lockbench:generators:{test2}:0", "lockbench:generators:{test}:mine"} {
		if err := client.Set(t.Context(), key, "somebody else's", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	members := []*Member{
		join(t, server, generators(3, -1)), join(t, server, generators(3, 2)), join(t, server, generators(3, -1)),
	}
	for i, want := range []int{0, 2, 1} {
		if m := members[i]; m.Index != want || m.Seed != 9 {
			t.Errorf("it is generator %d, not %d, with seed %d", m.Index, want, m.Seed)
		}
	}
	id := agreed(t, members)
	for step := range 3 {
		starts := make([]Start, 3)
		each(members, func(i int, m *Member) {
			start, records, err := m.Meet(t.Context(), fmt.Appendf(nil, "%d of %d", step, m.Index))
			if err != nil {
				t.Error(err)
				return
			}
			starts[i] = start
			const drift = 50 * time.Millisecond // of a clock that is slower than the server's
			exact, err := m.Uncertainty(t.Context(), start)
			start.Here = start.Here.Add(drift)
			drifted, wrong := m.Uncertainty(t.Context(), start)
			if err = errors.Join(err, wrong); err != nil || exact < start.Uncertainty || drifted < drift-exact {
				t.Errorf("it is exact to %v, and to %v after a drift of %v: %v", exact, drifted, drift, err)
			}
			for j, record := range records {
				if want := fmt.Sprintf("%d of %d", step, j); string(record) != want {
					t.Errorf("generator %d recorded %q, not %q", j, record, want)
				}
			}
		})
		for _, s := range starts {
			apart := s.Here.Sub(starts[0].Here).Abs()
			// Redis reports its time in microseconds, and its clock is not steady at that resolution.
			if !s.Server.Equal(starts[0].Server) || apart > s.Uncertainty+starts[0].Uncertainty+time.Millisecond {
				t.Errorf("they begin %v apart: %+v", apart, starts)
			}
		}
	}
	each(members, func(_ int, m *Member) {
		records, err := m.HandIn(t.Context(), fmt.Appendf(nil, "last of %d", m.Index))
		if err != nil || (records != nil) != (m.Index == 0) {
			t.Errorf("generator %d got %q, %v", m.Index, records, err)
		}
		for i, record := range records {
			if string(record) != fmt.Sprintf("last of %d", i) {
				t.Errorf("generator %d recorded %q", i, record)
			}
		}
	})
	if left := client.Keys(t.Context(), "*").Val(); len(left) != 2 {
		t.Errorf("left: %q", left)
	}
	again := []*Member{join(t, server, generators(2, 1)), join(t, server, generators(2, 0))} // with other settings
	if agreed(t, again) == id {
		t.Error("two sessions have the same locks")
	}
	each(again, func(_ int, m *Member) { m.Leave(t.Context()) })
}

// If a generator does not join, the others must end with an error that names it.
func TestMissingGenerator(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	of := generators(3, -1)
	of.Patience = 300 * time.Millisecond
	members := []*Member{join(t, server, of), join(t, server, of)}
	each(members, func(_ int, m *Member) {
		_, _, err := m.Meet(t.Context(), []byte("x"))
		if lost, is := errors.AsType[*Lost](err); !is || !errors.Is(err, ErrLost) || lost.Index != 2 {
			t.Errorf("generator %d: %v", m.Index, err)
		}
		m.Leave(t.Context())
	})
	for _, key := range server.Client(t).Keys(t.Context(), "*").Val() {
		if ttl := server.Client(t).PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > life {
			t.Errorf("%s stays for %v", key, ttl)
		}
	}
}

// One of three generators is stopped. The others must end with an error that names it. Generator 0 must still get the
// records of the others, but if it was itself stopped, no generator may get them.
func TestStoppedGenerator(t *testing.T) {
	t.Parallel()
	for _, stopped := range []int{0, 2} {
		t.Run(fmt.Sprint("generator ", stopped), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			members := met(t, server, 3)
			within, cancel := members[1].Context(t.Context())
			defer cancel()
			members[stopped].Leave(t.Context())
			<-within.Done()
			if lost, is := errors.AsType[*Lost](context.Cause(within)); !is || lost.Index != stopped {
				t.Errorf("it ended because of %v", context.Cause(within))
			}
			each(slices.Delete(slices.Clone(members), stopped, stopped+1), func(_ int, m *Member) {
				if _, _, err := m.Meet(t.Context(), []byte("x")); !errors.Is(err, ErrLost) {
					t.Errorf("generator %d went on: %v", m.Index, err)
				}
				records, err := m.HandIn(t.Context(), []byte{byte(m.Index)})
				if err != nil || (records != nil) != (m.Index == 0) || m.Lost() == nil || m.Lost().Index != stopped {
					t.Errorf("generator %d got %q, %v, and misses %v", m.Index, records, err, m.Lost())
				}
				if records != nil && (records[2] != nil || string(records[1]) != "\x01") {
					t.Errorf("it got %q", records)
				}
			})
		})
	}
}

// A generator is stopped while generator 0 waits for its record. It must be reported as stopped, not as dead.
func TestGeneratorStoppedAtTheEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	members := met(t, server, 3)
	members[0].stop() // it no longer checks the others, as at its end
	members[0].beating.Wait()
	each(members, func(i int, m *Member) {
		if i == 1 {
			m.Leave(t.Context())
			return
		}
		_, _ = m.HandIn(t.Context(), []byte("x")) // may report that another generator is lost
	})
	if lost := members[0].Lost(); lost == nil || lost.Index != 1 || lost.Why != "was stopped" {
		t.Errorf("generator 1 was stopped, and it is said: %v", lost)
	}
}

// FLUSHALL deletes the keys of both generators. Each must report itself as lost, not the other, and must return no
// records.
func TestGeneratorsWhoseKeysDisappear(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	members := met(t, server, 2)
	if err := server.Client(t).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	each(members, func(_ int, m *Member) {
		within, cancel := m.Context(t.Context())
		defer cancel()
		<-within.Done()
		if lost := m.Lost(); lost.Index != m.Index {
			t.Errorf("generator %d says: %v", m.Index, lost)
		}
		if records, err := m.HandIn(t.Context(), []byte("x")); records != nil || err != nil {
			t.Errorf("generator %d reports %q, %v", m.Index, records, err)
		}
	})
}

// A failed session leaves its keys, except the settings, which have expired. A generator with the same session name
// must start a new session.
func TestSessionAfterFailedSession(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	of := generators(4, 3)
	of.Patience = time.Minute
	failed := join(t, server, of)
	if _, err := failed.HandIn(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := server.Client(t).Del(t.Context(), of.settingsKey()).Err(); err != nil { // as if it had expired
		t.Fatal(err)
	}
	next := join(t, server, of)
	if next.meeting == failed.meeting {
		t.Error("it joined a session that has ended")
	}
	next.Leave(t.Context())
}

// In a cluster, all generators must read the clock of the node that holds the session's keys.
func TestClusterTime(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: top.Addrs(), Password: top.Password(t)})
	defer cluster.Close()
	var members []*Member
	for i := range 2 {
		m, err := Join(t.Context(), cluster, generators(2, i))
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	each(members, func(_ int, m *Member) {
		for range 2 {
			if _, _, err := m.Meet(t.Context(), []byte("x")); err != nil {
				t.Error(err)
			}
		}
	})
	each(members, func(_ int, m *Member) { m.Leave(t.Context()) })
	var asked atomic.Int32
	if err := cluster.ForEachMaster(t.Context(), func(ctx context.Context, server *redis.Client) error {
		stats, err := server.Info(ctx, "commandstats").Result()
		if strings.Contains(stats, "cmdstat_time:") {
			asked.Add(1)
		}
		return err
	}); err != nil || asked.Load() != 1 {
		t.Errorf("%d servers were asked for their time, %v", asked.Load(), err)
	}
}

// If a generator ends early, the other generators must not wait for it, and generator 0 must still get its record.
func TestGeneratorThatEndsEarly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	members := met(t, server, 2)
	each(members, func(i int, m *Member) {
		if i == 0 {
			if _, _, err := m.Meet(t.Context(), []byte("x")); fmt.Sprint(err) != "generator 1 ended before the others" {
				t.Error(err)
			}
		}
		records, err := m.HandIn(t.Context(), fmt.Append(nil, i))
		if err != nil || (records != nil) != (i == 0) || i == 0 && string(records[1]) != "1" {
			t.Errorf("generator %d got %q, %v", i, records, err)
		}
	})
}

// Join must refuse a generator that does not fit the session, with the reason in the error.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	members := []*Member{join(t, server, generators(2, 1))}
	refused := func(want string, of Generators) {
		t.Helper()
		_, err := Join(t.Context(), server.Client(t), of)
		if !errors.Is(err, ErrRefused) || fmt.Sprint(err) != "--generators: "+want {
			t.Errorf("%v, not %q", err, want)
		}
	}
	refused("session test already has another generator 1", generators(2, 1))
	other := generators(2, 0)
	other.Settings = map[string]string{"--clients": "6"}
	refused("--clients is 6 here, but 5 for the first generator", other)
	other.Settings = nil
	refused("--clients is not given here, but 5 for the first generator", other)
	members = append(members, join(t, server, generators(2, -1)))
	refused("session test already has all its 2 generators", generators(2, -1))
	for range 2 {
		each(members, func(_ int, m *Member) {
			if _, _, err := m.Meet(t.Context(), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	refused("session test has begun without this generator", generators(2, 0))
	left := members[0].meeting
	members[1].Leave(t.Context())
	members[0].Leave(t.Context())
	// If the settings expire before the generators' states, the next session must use other keys.
	if err := server.Client(t).Del(t.Context(), generators(2, 0).settingsKey()).Err(); err != nil {
		t.Fatal(err)
	}
	if again := join(t, server, generators(2, 0)); again.meeting == left {
		t.Error("it joined a session that has ended")
	} else {
		again.Leave(t.Context())
	}
}

// Another program deletes or replaces the record of one generator. Only this record may then be missing.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(redis.UniversalClient, string) error{
		"deleted": func(c redis.UniversalClient, key string) error { return c.Del(t.Context(), key).Err() },
		"too long": func(c redis.UniversalClient, key string) error {
			return c.SetRange(t.Context(), key, mostRecord, "xx").Err()
		},
		"of another type": func(c redis.UniversalClient, key string) error {
			return errors.Join(c.Del(t.Context(), key).Err(), c.LPush(t.Context(), key, "x").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			members := met(t, server, 2)
			if err := members[1].record(t.Context(), last, []byte("last")); err != nil {
				t.Fatal(err)
			}
			if err := members[1].publishState(t.Context(), func(s *state) { s.phase = done }, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := damage(server.Client(t), members[1].key("record", last, 1)); err != nil {
				t.Fatal(err)
			}
			records, err := members[0].HandIn(t.Context(), []byte("mine"))
			if err != nil || len(records) != 2 || string(records[0]) != "mine" || records[1] != nil {
				t.Errorf("generator 0 got %q, %v", records, err)
			}
			members[1].stop()
			members[1].beating.Wait()
		})
	}
}

// Another program writes values into the session's keys. Each such value must cause an error, and none may be mistaken
// for a generator's value.
func TestHostileKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, value, want string }{
		"a state":         {"0", "here I am", "does not hold a generator's state"},
		"a state's end":   {"0", "1 here 0 nonce and more", "does not hold a generator's state"},
		"a long state":    {"0", strings.Repeat("x", 1000), "does not hold a generator's state: the state has 129 bytes"},
		"no state":        {"0", strings.Repeat("1", mostState), "does not hold a generator's state"},
		"a start":         {"start:1", "never", "does not hold a time"},
		"a distant start": {"start:1", "99999999999999999", "from now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := server.Client(t)
			m := join(t, server, generators(2, 1))
			put := func(key, value string) {
				t.Helper()
				if err := client.Set(t.Context(), m.key(key), value, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			put("0", "1 here 0 nonce")
			put("record:1:0", "x")
			put(c.key, c.value)
			if _, _, err := m.Meet(t.Context(), []byte("x")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %q", err, c.want)
			}
			m.Leave(t.Context())
		})
	}
	for _, settings := range []string{"", "{", `{"meeting": "x"}`, strings.Repeat(" ", mostSettings+1)} {
		server := redistest.Start(t)
		if err := server.Client(t).Set(t.Context(), generators(2, 0).settingsKey(), settings, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if m, err := Join(t.Context(), server.Client(t), generators(2, 0)); err == nil {
			t.Errorf("joined a session with %.20q", settings)
			m.Leave(t.Context())
		} else if !errors.Is(err, store.ErrConfig) {
			t.Error(err)
		}
	}
}
