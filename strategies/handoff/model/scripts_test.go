//go:build !race

package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// scripts executes the model's commands on a real Redis. It executes each command once per state of the lock and caches
// the answer, because a search meets the same state in many worlds.
type scripts struct {
	t       testing.TB
	mu      sync.Mutex
	answers map[question]answer
	texts   map[verb]*redis.Script
	clients map[bool]redis.UniversalClient // of two users: one who may publish, and one who may not
}

// question is a command and the state of the lock before it.
type question struct {
	server  redisState
	command command
}

// answer is the state of the lock after a command, the result of the command, and the messages that it published.
type answer struct {
	server redisState
	reply  reply
	said   []message
	clock  token // the progress of the clock
}

// then is the value of Redis's clock before each command, and anyToken is the token of each release. The tokens in an
// answer therefore show whether a script computed them from the clock or from the token of the release.
const (
	anyToken = 100
	then     = 1000
)

const (
	lock    = "lock"
	queue   = lock + ":handoff"
	realTTL = 600_000 // ms of a tick, so long that nothing runs out during the test
)

// processes are the names of the two processes. They have 26 characters, because grant.lua takes the first 26
// characters of an id as the name of its process.
var processes = [2]string{strings.Repeat("A", 26), strings.Repeat("B", 26)}

// around wraps a script so that it reads an artificial clock. It also records each message that the script publishes,
// with the number of receivers.
const around = `local said, clock, real = {}, 1000, redis
local redis = setmetatable({
  call = function(command, ...)
    if command == 'TIME' then
      clock = clock + 8
      return {0, clock}
    end
    return real.call(command, ...)
  end,
  pcall = function(...)
    local heard = real.pcall(...)
    if type(heard) == 'number' then -- SPUBLISH
      said[#said + 1] = select(3, ...) .. ' ' .. heard
    end
    return heard
  end,
}, {__index = real})
local function play()
%s
end
local ok, result = pcall(play)
if not ok then
  result = type(result) == 'table' and result.err or result
end
return {ok and 1 or 0, result, said, clock - 1000}`

// These scripts replace the commands that a process sends without a script. They are wrapped in the script around, like
// all others.
const (
	setSource = `local owner = redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4], 'NX', 'GET')
return {owner or ARGV[3], redis.call('TIME')[2]}`
	followSource = `return redis.call('RPUSHX', KEYS[2], ARGV[3])`
)

// show is a script that returns the state of the lock and its queue, and then deletes both for the next command.
var show = redis.NewScript(`local shown = {redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]),
  redis.call('LRANGE', KEYS[2], 0, -1), redis.call('PTTL', KEYS[2])}
redis.call('DEL', KEYS[1], KEYS[2])
return shown`)

// openScripts starts a Redis server and loads the scripts of this repository, wrapped in the script around.
func openScripts(t testing.TB) *scripts {
	t.Helper()
	server := redistest.Start(t)
	s := &scripts{t: t, clients: map[bool]redis.UniversalClient{}}
	for user, channels := range map[string]string{"speaker": "&*", "mute": "resetchannels"} {
		err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", user, "on", "nopass", "~*", "+@all", channels).Err()
		if err != nil {
			t.Fatal(err)
		}
		s.clients[user == "mute"] = redistest.Dial(t, "redis://"+user+":any@"+server.Addr+"?max_retries=-1")
	}
	if err := show.Load(t.Context(), s.clients[false]).Err(); err != nil {
		t.Fatal(err)
	}
	s.listen(server.Client(t))
	return s.with(noMistake)
}

// with returns the scripts with a planted mistake. The test fails if the scripts do not contain a text that the mistake
// replaces.
func (s *scripts) with(planted mistake) *scripts {
	s.t.Helper()
	texts, missing := map[verb]*redis.Script{}, slices.Clone(ofTheScripts[planted])
	for v, text := range map[verb]string{
		set: setSource, follow: followSource,
		// Each script is composed of the same files as in scripts.go.
		enqueue: source(s.t, "grant", "queue"), free: source(s.t, "free"), release: source(s.t, "grant", "release"),
		leave: source(s.t, "grant", "leave"), check: source(s.t, "grant", "check"), extend: source(s.t, "extend"),
	} {
		missing = slices.DeleteFunc(missing, func(e edit) bool { return strings.Contains(text, e.old) })
		for _, e := range ofTheScripts[planted] {
			text = strings.ReplaceAll(text, e.old, e.new)
		}
		texts[v] = redis.NewScript(fmt.Sprintf(around, text))
		if err := texts[v].Load(s.t.Context(), s.clients[false]).Err(); err != nil {
			s.t.Fatalf("%v: %v", v, err)
		}
	}
	if len(missing) > 0 {
		s.t.Fatalf("%s: the scripts do not have %v", planted, missing)
	}
	return &scripts{t: s.t, answers: map[question]answer{}, texts: texts, clients: s.clients}
}

// source returns the concatenated text of the named scripts of this repository. The names omit the extension .lua.
func source(t testing.TB, names ...string) (text string) {
	t.Helper()
	for _, name := range names {
		part, err := os.ReadFile("../" + name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		text += string(part)
	}
	return text
}

// base returns the prefix of the channels that a command publishes to. It differs for each combination of subscribed
// processes, so that one Redis can serve all combinations.
func base(hears [2]bool) string { return fmt.Sprint(hears, ":") }

// listen subscribes to the channels of each combination of subscribed processes. Each combination has one channel for
// each process in it, with the prefix that base returns.
func (s *scripts) listen(client redis.UniversalClient) {
	var channels []string
	for _, hears := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		for i, process := range processes {
			if hears[i] {
				channels = append(channels, base(hears)+process)
			}
		}
	}
	redistest.Hear(s.t, client, channels...)
}

// exec executes a command on the lock of w, updates w to the state after the command, and advances clock. It returns
// the reply and the published messages, with tokens converted to the model's clock.
func (s *scripts) exec(w *redisState, c command, clock *token) (reply, []message) {
	q := question{*w, c}
	q.command.token = min(c.token, 1) * anyToken
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.answers[q]
	if !known {
		var err error
		if a, err = s.ask(q); err != nil {
			s.t.Fatalf("%+v: %v", q, err)
		}
		s.answers[q] = a
	}
	made := func(t token) token {
		switch {
		case t == 0:
			return 0
		case t < then:
			return c.token + t - anyToken
		}
		return *clock + t - then
	}
	r, said := a.reply, slices.Clone(a.said)
	r.token = made(r.token)
	for i := range said {
		said[i].token = made(said[i].token)
	}
	*clock += a.clock
	*w = a.server
	return r, said
}

// ask executes a question's command on Redis in the question's state.
func (s *scripts) ask(q question) (answer, error) {
	var read func() (answer, error)
	_, _ = s.clients[q.server.mute].Pipelined(s.t.Context(), func(pipe redis.Pipeliner) error {
		read = s.put(pipe, q)
		return nil // each command has its own error
	})
	return read()
}

// put adds the commands for a question to a pipeline. The returned function must be called after the pipeline has run,
// and returns the answer.
func (s *scripts) put(pipe redis.Pipeliner, q question) (read func() (answer, error)) {
	ctx, c, keys := s.t.Context(), q.command, []string{lock, queue}
	args := []any{base(q.server.hears), processes[c.by]}
	switch c.verb {
	case set:
		args = append(args, idOf(c.id), realTTL)
	case follow:
		args = append(args, entryOf(c.id))
	case enqueue:
		args = append(args, idOf(c.id), realTTL, c.mode.String())
	case free:
		keys, args = keys[:1], []any{idOf(c.id)}
	case release:
		args = append(args, idOf(c.id), int(c.token), entryOf(c.entry))
	case leave:
		args = append(args, 64)
		for _, id := range [...]ident{c.id, c.more[0], c.more[1]} {
			if id != 0 && c.alone {
				args = append(args, idOf(id))
			} else if id != 0 {
				args = append(args, entryOf(id))
			}
		}
	case check:
		args = append(args, idOf(c.seen), entryOf(c.id))
	case extend:
		args = append(args, idOf(c.id), int(c.ttl)*realTTL)
	}
	setUp(ctx, pipe, q.server)
	refuse(ctx, pipe, q.server.fault, 1)
	replied := s.texts[c.verb].EvalSha(ctx, pipe, keys, args...)
	refuse(ctx, pipe, q.server.fault, 0)
	shown := show.EvalSha(ctx, pipe, []string{lock, queue})
	return func() (a answer, err error) {
		values, refused := replied.Slice()
		state, err := shown.Slice()
		if err = cmp.Or(refused, err); err != nil {
			return a, err
		}
		a.server = q.server
		a.server.see(state)
		return a, a.parse(c, values)
	}
}

// setUp adds to a pipeline the commands that put Redis's lock and queue into the state s.
func setUp(ctx context.Context, pipe redis.Pipeliner, s redisState) {
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

// refuse adds to a pipeline the command that makes the fault begin (value 1) or end (value 0).
func refuse(ctx context.Context, pipe redis.Pipeliner, fault refusal, value int) {
	switch fault {
	case refusesWrite:
		pipe.Do(ctx, "config", "set", "min-replicas-to-write", value)
	case refusesGrowth:
		pipe.Do(ctx, "config", "set", "maxmemory", value)
	}
}

// see sets the lock's state from the reply of the script show.
func (s *redisState) see(state []any) {
	value := state[0].(string)
	s.owner, s.marked, s.left = identOf(value), strings.HasSuffix(value, "+"), inTicks(state[1])
	s.queue = [slots]ident{}
	for i, entry := range state[2].([]any) {
		id, _, _ := strings.Cut(entry.(string), " ")
		s.queue[i] = identOf(id)
	}
	s.kept = state[3].(int64) > 0
}

// parse reads the reply of a script that is wrapped in the script around: the result of the wrapped script, its
// messages, and the progress of the clock.
func (a *answer) parse(c command, values []any) error {
	a.clock = token(values[3].(int64))
	for _, said := range values[2].([]any) {
		id, t := grantOf(said)
		a.said = append(a.said, message{id: id, token: t, heard: !strings.HasSuffix(said.(string), " 0")})
	}
	r, result := &a.reply, values[1]
	if values[0] == int64(0) {
		r.outcome = refused
		if text := fmt.Sprint(result); !strings.Contains(text, "NOREPLICAS") && !strings.Contains(text, "OOM") {
			return errors.New(text)
		}
		return nil
	}
	list, _ := result.([]any)
	switch c.verb {
	case free:
		result = list[0]
	case check:
		r.owner, r.left, r.slot = identOf(list[0].(string)), inTicks(list[1]), int8(list[3].(int64))
		now, _ := strconv.Atoi(list[2].(string))
		r.token, result = token(now), list[4]
	}
	switch result := result.(type) {
	case string:
		r.newOwner, r.token = grantOf(result)
	case int64:
		if c.verb == extend && result != 0 {
			r.code, r.token = 1, token(result)
		} else {
			r.code = int8(result)
		}
	case []any:
		if c.verb == set {
			r.owner, r.token = identOf(list[0].(string)), token(list[1].(int64))
		} else {
			r.left, r.slot = inTicks(list[0]), int8(list[1].(int64))
		}
	}
	return nil
}

// grantOf parses a grant message, as the function tell in grant.lua returns it.
func grantOf(reply any) (id ident, t token) {
	words := strings.Fields(reply.(string))
	number, _ := strconv.Atoi(words[1])
	return identOf(words[0]), token(number)
}

// inTicks converts the reply of PTTL to ticks, rounded up. It returns 0 if there is no key or no TTL.
func inTicks(ttl any) int8 { return int8((max(ttl.(int64), 0) + realTTL - 1) / realTTL) }

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

// identOf parses an id, or the value of a lock, which is an id that may be followed by "+".
func identOf(id string) ident {
	process, number, _ := strings.Cut(strings.TrimSuffix(id, "+"), ":")
	n, _ := strconv.Atoi(number)
	return ident(max(0, slices.Index(processes[:], process))*idsEach + n)
}
