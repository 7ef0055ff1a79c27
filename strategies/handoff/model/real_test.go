//go:build !race

package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// real is a Redis on which commands of the model are carried out by the scripts.
type real struct {
	t       testing.TB
	admin   *redis.Client
	client  *redis.Client // of a user to whom SPUBLISH can be forbidden
	scripts map[verb]*redis.Script
	ears    [2]*redis.PubSub
	hears   [2]bool
	base    string
}

// names of the two processes: 26 characters, as grant.lua cuts them off an id.
var processes = [2]string{strings.Repeat("A", 26), strings.Repeat("B", 26)}

const realTTL = 600_000 // ms of a tick: nothing runs out by itself

func openReal(t testing.TB, base string) *real {
	t.Helper()
	server := redistest.Start(t)
	r := &real{t: t, admin: server.Client(t), base: base, scripts: map[verb]*redis.Script{}}
	ctx := t.Context()
	if err := r.admin.Do(ctx, "ACL", "SETUSER", "player", "on", "nopass", "~*", "+@all", "&*").Err(); err != nil {
		t.Fatal(err)
	}
	r.client = redis.NewClient(&redis.Options{
		Addr: server.Addr, Username: "player", Password: "any", MaxRetries: -1,
		DisableIdentity: true,
	})
	t.Cleanup(func() { _ = r.client.Close() })
	for v, name := range map[verb]string{
		enqueue: "queue", release: "release", leave: "leave", check: "check",
		extend: "extend",
	} {
		text := source(t, name)
		switch v { // as scripts.go puts them together
		case extend:
		case release:
			text = source(t, "free") + source(t, "grant") + text
		default:
			text = source(t, "grant") + text
		}
		r.scripts[v] = redis.NewScript(text)
		if err := r.scripts[v].Load(ctx, r.client).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range r.ears {
		r.ears[i] = r.admin.SSubscribe(ctx)
		t.Cleanup(func() { _ = r.ears[i].Close() })
	}
	return r
}

func source(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func idOf(i ident) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", processes[i.process()], i%idsEach)
}

func entryOf(i ident) string {
	if i == 0 {
		return ""
	}
	return idOf(i) + " " + strconv.Itoa(realTTL)
}

func identOf(id string) ident {
	process, number, ok := strings.Cut(id, ":")
	n, err := strconv.Atoi(number)
	for i, name := range processes {
		if ok && err == nil && process == name {
			return ident(i*idsEach + n)
		}
	}
	return 0
}

// send puts a command into a pipeline, as package handoff sends it.
func (r *real) send(ctx context.Context, pipe redis.Pipeliner, c command, lock, token string) []*redis.Cmd {
	queue := "{" + lock + "}:handoff"
	run := func(args ...any) []*redis.Cmd {
		keys := []string{lock, queue}
		args = append([]any{r.base, processes[c.by]}, args...)
		return []*redis.Cmd{r.scripts[c.verb].EvalSha(ctx, pipe, keys, args...)}
	}
	switch c.verb {
	case set:
		return []*redis.Cmd{
			pipe.Do(ctx, "set", lock, idOf(c.id), "px", realTTL, "nx", "get"),
			pipe.Do(ctx, "time"),
		}
	case follow:
		return []*redis.Cmd{pipe.Do(ctx, "rpushx", queue, entryOf(c.id))}
	case enqueue:
		return run(idOf(c.id), realTTL, c.mode.String())
	case release:
		return run(idOf(c.id), token, entryOf(c.entry))
	case leave:
		var entries []any
		for _, id := range [...]ident{c.id, c.more[0], c.more[1]} {
			if id != 0 {
				entry := entryOf(id)
				if c.alone {
					entry = idOf(id)
				}
				entries = append(entries, entry)
			}
		}
		return run(entries...)
	case check:
		return run(idOf(c.seen), entryOf(c.id))
	default:
		return []*redis.Cmd{r.scripts[extend].EvalSha(ctx, pipe, []string{lock, queue}, r.base, processes[c.by],
			idOf(c.id), int(c.ttl)*realTTL)}
	}
}

// observed is what can be seen of the server, and of a reply: the model's with what has
// no value in it taken out.
type observed struct {
	reply  reply
	number string // the token as Redis said it
	owner  ident
	marked bool
	left   int8
	queue  [places]ident
	kept   bool
}

// see is what the model says will be observed.
func see(c command, r reply, s server) observed {
	if c.verb == check && r.told == 0 || c.verb == enqueue && r.told == 0 || r.outcome != answered {
		r.token = 0
	}
	r.token = min(r.token, 1)
	return observed{reply: r, owner: s.owner, marked: s.marked, left: s.left, queue: s.queue, kept: s.kept}
}

// view is a command that was carried out, and what shows the state after it.
type view struct {
	command     command
	name        string // of the lock
	replies     []*redis.Cmd
	lock, ttl   *redis.Cmd
	queue, kept *redis.Cmd
}

// do puts a command into a pipeline, and what shows the state after it.
func (r *real) do(ctx context.Context, pipe redis.Pipeliner, c command, lock, token string) view {
	replies := r.send(ctx, pipe, c, lock, token)
	queue := "{" + lock + "}:handoff"
	return view{
		command: c, name: lock, replies: replies,
		lock: pipe.Do(ctx, "get", lock), ttl: pipe.Do(ctx, "pttl", lock),
		queue: pipe.Do(ctx, "lrange", queue, 0, -1), kept: pipe.Do(ctx, "pttl", queue),
	}
}

// observed reads a view after the pipeline was carried out.
func (v view) observed() (o observed, err error) {
	o.reply, o.number, err = parseReply(v.command, v.replies, v.name)
	if err != nil {
		return o, err
	}
	lock, _ := v.lock.Text()
	o.marked = strings.HasSuffix(lock, "+")
	o.owner = identOf(strings.TrimSuffix(lock, "+"))
	ttl, _ := v.ttl.Int64()
	kept, _ := v.kept.Int64()
	o.left, o.kept = inTicks(ttl), kept > 0
	entries, err := v.queue.StringSlice()
	if err != nil {
		return o, err
	}
	for i, entry := range entries {
		id, _, _ := strings.Cut(entry, " ")
		o.queue[i] = identOf(id)
		if entryOf(o.queue[i]) != entry {
			return o, fmt.Errorf("the queue has %q", entry)
		}
	}
	return o, nil
}

// inTicks are those of a PTTL; 0 for no key, or one that lasts for ever.
func inTicks(ttl int64) int8 { return int8((max(ttl, 0) + realTTL - 1) / realTTL) }

func parseReply(c command, replies []*redis.Cmd, lock string) (r reply, number string, err error) {
	value, err := replies[0].Result()
	switch {
	case err == nil, errors.Is(err, redis.Nil):
	case redis.HasErrorPrefix(err, "NOREPLICAS"), redis.HasErrorPrefix(err, "OOM"),
		redis.HasErrorPrefix(err, "READONLY"):
		return reply{outcome: refused}, "", nil
	default:
		return r, "", fmt.Errorf("%v: %w", c.verb, err)
	}
	told := func(said string) bool {
		id, rest, _ := strings.Cut(said, " ")
		token, rest, _ := strings.Cut(rest, " ")
		if _, name, _ := strings.Cut(rest, " "); name != lock {
			return false
		}
		r.told, r.token, number = identOf(id), 1, token
		return true
	}
	switch c.verb {
	case set:
		r.owner, r.token = c.id, 1
		if owner, ok := value.(string); ok {
			r.owner = identOf(strings.TrimSuffix(owner, "+"))
		}
		parts, err := replies[1].Int64Slice()
		if err != nil || len(parts) != 2 {
			return r, "", fmt.Errorf("TIME: %v %w", parts, err)
		}
		return r, strconv.FormatInt(parts[0]*1_000_000+parts[1], 10), nil
	case check:
		values, ok := value.([]any)
		if !ok || len(values) != 5 {
			return r, "", fmt.Errorf("check answers %v", value)
		}
		owner, _ := values[0].(string)
		r.owner = identOf(strings.TrimSuffix(owner, "+"))
		ttl, _ := values[1].(int64)
		r.left = inTicks(ttl)
		place, _ := values[3].(int64)
		r.place = int8(place)
		switch t := values[4].(type) {
		case int64:
			r.code = int8(t)
		case string:
			if !told(t) {
				return r, "", fmt.Errorf("check tells %q", t)
			}
			return r, number, nil
		}
		number, _ = values[2].(string)
		return r, number, nil
	}
	switch value := value.(type) {
	case int64:
		if c.verb == extend && value != 0 {
			r.code, r.token = 1, 1
			return r, strconv.FormatInt(value, 10), nil
		}
		r.code = int8(value)
	case string:
		if !told(value) {
			return r, "", fmt.Errorf("%v tells %q", c.verb, value)
		}
	case []any:
		if len(value) != 2 {
			return r, "", fmt.Errorf("%v answers %v", c.verb, value)
		}
		ttl, _ := value[0].(int64)
		r.left = inTicks(ttl)
		place, _ := value[1].(int64)
		r.place = int8(place)
	default:
		return r, "", fmt.Errorf("%v answers %v", c.verb, value)
	}
	return r, number, nil
}

// setUp has the real server's lock in a state.
func setUp(ctx context.Context, pipe redis.Pipeliner, s server, lock string) {
	queue := "{" + lock + "}:handoff"
	if s.owner != 0 {
		value := idOf(s.owner)
		if s.marked {
			value += "+"
		}
		pipe.Do(ctx, "set", lock, value, "px", int(s.left)*realTTL)
	}
	for _, id := range s.queue {
		if id != 0 {
			pipe.Do(ctx, "rpush", queue, entryOf(id))
		}
	}
	if s.kept {
		pipe.Do(ctx, "pexpire", queue, realTTL)
	}
}

// fail has the server refuse what the state says.
func (r *real) fail(s server) {
	r.t.Helper()
	replicas, memory, channels := "0", "0", "&*"
	switch s.fault {
	case refusesWrite:
		replicas = "1"
	case refusesGrowth:
		memory = "1"
	}
	if s.mute {
		channels = "resetchannels"
	}
	ctx := r.t.Context()
	_, err := r.admin.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Do(ctx, "config", "set", "min-replicas-to-write", replicas, "maxmemory", memory)
		pipe.Do(ctx, "acl", "setuser", "player", "resetchannels", channels)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// listen has the processes' connections listen, or not.
func (r *real) listen(hears [2]bool) {
	r.t.Helper()
	ctx := r.t.Context()
	for i, want := range hears {
		if want == r.hears[i] {
			continue
		}
		do := r.ears[i].SUnsubscribe
		if r.hears[i] = want; want {
			do = r.ears[i].SSubscribe
		}
		if err := do(ctx, r.base+processes[i]); err != nil {
			r.t.Fatal(err)
		}
		if message, err := r.ears[i].ReceiveTimeout(ctx, 20*time.Second); err != nil {
			r.t.Fatalf("%v: %v", message, err)
		}
	}
}

// heard returns what each process has been told since the last time, by lock.
func (r *real) heard() (told [2]map[string][]string) {
	r.t.Helper()
	ctx := r.t.Context()
	for i, ear := range r.ears {
		told[i] = map[string][]string{}
		if !r.hears[i] {
			continue
		}
		if err := r.admin.SPublish(ctx, r.base+processes[i], "end").Err(); err != nil {
			r.t.Fatal(err)
		}
		for {
			m, err := ear.ReceiveTimeout(ctx, 20*time.Second)
			if err != nil {
				r.t.Fatal(err)
			}
			message, ok := m.(*redis.Message)
			if !ok {
				r.t.Fatalf("process %d has %v", i, m)
			}
			if message.Payload == "end" {
				break
			}
			words := strings.Split(message.Payload, " ")
			told[i][words[3]] = append(told[i][words[3]], words[0]+" "+words[1])
		}
	}
	return told
}
