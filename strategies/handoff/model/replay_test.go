//go:build !race

package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// deep has the tests look further than there is time for every day.
var deep = os.Getenv("LOCKBENCH_MODEL") != ""

// transition is a command, and the state that it meets.
type transition struct {
	server  server
	command command
}

// outcomeOf is what the scripts made of a transition.
type outcomeOf struct {
	observed
	said []string // to process 1, "id token"
}

// anyToken is of the leases that are released.
const anyToken = 100

// transitions are all commands of process 0 that a small lock may meet, by what the server
// refuses and whether process 1 listens.
func transitions() map[server][]transition {
	const a1, a2, a3, b1, b2 = ident(1), ident(2), ident(3), ident(idsEach + 1), ident(idsEach + 2)
	var commands []command
	for _, id := range []ident{a1, a2} {
		commands = append(commands,
			command{verb: set, id: id}, command{verb: follow, id: id},
			command{verb: release, id: id, token: anyToken}, command{verb: release, id: id, token: anyToken, entry: a3},
			command{verb: release, id: id},
			command{verb: leave, id: id, alone: true}, command{verb: leave, id: id, more: [2]ident{id}},
			command{verb: leave, id: id}, command{verb: extend, id: id, ttl: 1},
			command{verb: extend, id: id, ttl: longest})
		for m := wait; m <= front; m++ {
			commands = append(commands, command{verb: enqueue, mode: m, id: id})
		}
	}
	commands = append(commands, command{verb: leave, id: a1, more: [2]ident{a2}},
		command{verb: leave, id: a3, more: [2]ident{a1, a2}})
	for _, id := range []ident{a1, a3} {
		for _, seen := range []ident{0, a1, b1} {
			commands = append(commands, command{verb: check, id: id, seen: seen})
		}
	}
	queues := [][places]ident{{}}
	for _, first := range []ident{a1, a2, b1, b2} {
		queues = append(queues, [places]ident{first})
		for _, second := range []ident{a2, b1, b2} {
			queues = append(queues, [places]ident{first, second})
			if deep {
				for _, third := range []ident{a1, a2, b1} {
					queues = append(queues, [places]ident{first, second, third})
				}
			}
		}
	}
	all := map[server][]transition{}
	for _, how := range []server{
		{},
		{hears: [2]bool{false, true}},
		{fault: refusesWrite},
		{fault: refusesGrowth, hears: [2]bool{false, true}},
		{mute: true, hears: [2]bool{false, true}},
	} {
		for _, owner := range []server{
			{},
			{owner: a1, left: 1},
			{owner: a1, marked: true, left: 2},
			{owner: b1, left: 2},
			{owner: b1, marked: true, left: 1},
		} {
			for i, queue := range queues {
				s := how
				s.owner, s.marked, s.left, s.queue = owner.owner, owner.marked, owner.left, queue
				s.kept = queue[0] != 0 && i%3 != 0
				for _, c := range commands {
					all[how] = append(all[how], transition{s, c})
				}
			}
		}
	}
	return all
}

// play has a real Redis carry out transitions, each with a lock of its own.
func (r *real) play(how server, all []transition) []outcomeOf {
	r.t.Helper()
	ctx := r.t.Context()
	const batch = 500
	views := make([]view, len(all))
	r.fail(server{})
	for start := 0; start < len(all); start += batch {
		_, err := r.admin.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := start; i < min(start+batch, len(all)); i++ {
				setUp(ctx, pipe, all[i].server, r.name(i))
			}
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.listen(how.hears)
	r.fail(how)
	for start := 0; start < len(all); start += batch {
		_, _ = r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
			for i := start; i < min(start+batch, len(all)); i++ {
				views[i] = r.do(ctx, pipe, all[i].command, r.name(i), strconv.Itoa(int(all[i].command.token)))
			}
			return nil
		})
	}
	told := r.heard()
	out := make([]outcomeOf, len(all))
	for i := range all {
		o, err := views[i].observed()
		if err != nil {
			r.t.Fatalf("%+v: %v", all[i], err)
		}
		out[i] = outcomeOf{o, told[1][r.name(i)]}
		if len(told[0][r.name(i)]) > 0 {
			r.t.Fatalf("%+v: process 0 was told %v by itself", all[i], told[0][r.name(i)])
		}
	}
	r.fail(server{})
	if err := r.admin.FlushDB(ctx).Err(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *real) name(i int) string { return "lock" + strconv.Itoa(i) }

// differs says how the model has a transition otherwise than the scripts, "" if it has not.
func differs(tr transition, is outcomeOf, planted mistake) string {
	s, clock := tr.server, token(1000)
	reply, said := s.exec(tr.command, &clock, planted)
	want := see(tr.command, reply, s)
	got := is.observed
	got.number = ""
	if got != want {
		return fmt.Sprintf("the scripts: %+v\nthe model:   %+v", got, want)
	}
	var heard []message
	for _, m := range said {
		if m.heard {
			heard = append(heard, m)
		}
	}
	if len(heard) != len(is.said) {
		return fmt.Sprintf("the scripts tell %v, the model %v", is.said, heard)
	}
	for i, m := range heard {
		id, number, _ := cut(is.said[i])
		if id != m.id || tr.command.token != 0 && number != int64(m.token) || tr.command.token == 0 && number < 1e15 {
			return fmt.Sprintf("the scripts tell %v, the model %+v", is.said, heard)
		}
	}
	if tr.command.token != 0 && reply.told != 0 && is.number != strconv.Itoa(int(reply.token)) {
		return fmt.Sprintf("the script's token is %v, the model's %v", is.number, reply.token)
	}
	return ""
}

// The scripts and the model do the same with every command in every small state, and what
// is planted in the model shows.
func TestScriptsAreTheModels(t *testing.T) {
	t.Parallel()
	r := openReal(t, "{m}:")
	found := map[mistake]int{}
	count := 0
	for how, all := range transitions() {
		for i, is := range r.play(how, all) {
			count++
			if diff := differs(all[i], is, noMistake); diff != "" {
				t.Errorf("%+v\n%+v\n%s", all[i].server, all[i].command, diff)
			}
			for _, m := range ofTheScripts {
				if found[m] == 0 && differs(all[i], is, m) != "" {
					found[m] = count
				}
			}
		}
	}
	for _, m := range ofTheScripts {
		if found[m] == 0 {
			t.Errorf("that %s is not found", m)
		}
	}
	t.Logf("%d transitions", count)
}

func cut(said string) (id ident, number int64, err error) {
	var name string
	if _, err := fmt.Sscanf(said, "%s %d", &name, &number); err != nil {
		return 0, 0, err
	}
	return identOf(name), number, nil
}

// walk goes through the model at random, with every fault, and returns what happens to the server.
func walk(random *rand.Rand) (events []event) {
	p := protocol{linger: random.IntN(2) == 0, cluster: random.IntN(3) == 0}
	p.observe = func(e event) { events = append(events, e) }
	once := int8(1)
	w := start(faults{
		once, once, int8(random.IntN(2)), once, once, once, int8(random.IntN(2)), once, once, once, once,
		2, 2, 0,
	})
	for range 60 {
		var ways []step
		p.observe = nil
		p.next(&w, func(n *world, s step) { ways = append(ways, s) })
		if len(ways) == 0 {
			break
		}
		chosen, i := random.IntN(len(ways)), 0
		if c := ways[chosen].class; c == harms || c == ticks { // rather what goes on
			chosen = random.IntN(len(ways))
		}
		var next world
		var happened []event
		p.observe = func(e event) { happened = append(happened, e) }
		p.next(&w, func(n *world, s step) {
			if i == chosen {
				next = *n
				events = append(events, happened...)
			}
			happened = nil
			i++
		})
		if w = next; w.full {
			break
		}
	}
	return events
}

// replay plays what happens to the server on real ones: the second is what was the primary.
type replay struct {
	t      *testing.T
	now    *real
	old    *real
	lock   string
	tokens map[token]string // what the model's were
}

func (p *replay) play(e event, planted mistake) error {
	ctx := p.t.Context()
	switch e.what {
	case failedOver:
		p.now, p.old = p.old, p.now
		p.now.fail(server{})
		p.now.listen(e.after.hears)
		err := pipe(ctx, p.now, func(pipe redis.Pipeliner) { setUp(ctx, pipe, e.after, p.lock) })
		p.now.fail(e.after)
		return err
	case changed:
		return p.change(ctx, e)
	case executedOnOld:
		p.old.fail(server{})
		p.old.listen(e.before.hears)
		err := pipe(ctx, p.old, func(pipe redis.Pipeliner) {
			pipe.Do(ctx, "flushdb")
			setUp(ctx, pipe, e.before, p.lock)
			pipe.Do(ctx, "replicaof", "127.0.0.1", "1")
		})
		if err == nil {
			err = p.compare(ctx, p.old, e)
		}
		if err := pipe(ctx, p.old, func(pipe redis.Pipeliner) { pipe.Do(ctx, "replicaof", "no", "one") }); err != nil {
			return err
		}
		return err
	default:
		return p.compare(ctx, p.now, e)
	}
}

func pipe(ctx context.Context, r *real, do func(pipe redis.Pipeliner)) error {
	_, err := r.admin.Pipelined(ctx, func(pipe redis.Pipeliner) error { do(pipe); return nil })
	return err
}

// change does what is no command's doing: a lease or the queue is gone, a process listens or
// does no more, or Redis refuses something.
func (p *replay) change(ctx context.Context, e event) error {
	if e.before.fault != e.after.fault || e.before.mute != e.after.mute {
		p.now.fail(e.after)
	}
	p.now.listen(e.after.hears)
	var gone []string
	if e.before.owner != 0 && e.after.owner == 0 {
		gone = append(gone, p.lock)
	}
	if e.before.queue[0] != 0 && e.after.queue[0] == 0 {
		gone = append(gone, "{"+p.lock+"}:handoff")
	}
	return pipe(ctx, p.now, func(pipe redis.Pipeliner) {
		if len(gone) > 0 {
			p.now.allow(ctx, pipe, e.after, func() { pipe.Del(ctx, gone...) })
		}
		if e.after.owner != 0 && e.before.left != e.after.left {
			p.now.allow(ctx, pipe, e.after, func() { pipe.Do(ctx, "pexpire", p.lock, int(e.after.left)*realTTL) })
		}
	})
}

// allow has a write be done that a server refuses to others.
func (r *real) allow(ctx context.Context, pipe redis.Pipeliner, s server, do func()) {
	if s.fault == refusesWrite {
		pipe.Do(ctx, "config", "set", "min-replicas-to-write", "0")
		defer pipe.Do(ctx, "config", "set", "min-replicas-to-write", "1")
	}
	do()
}

// compare has a real server carry a command out as well.
func (p *replay) compare(ctx context.Context, r *real, e event) error {
	number := "0"
	if e.command.verb == release && e.command.token != 0 {
		number = p.tokens[e.command.token]
	}
	var v view
	_, _ = r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // the view has the errors
		v = r.do(ctx, pipe, e.command, p.lock, number)
		return nil
	})
	got, err := v.observed()
	if err != nil {
		return err
	}
	if e.reply.token != 0 && got.number != "" {
		p.tokens[e.reply.token] = got.number
	}
	got.number = ""
	if want := see(e.command, e.reply, e.after); got != want {
		return fmt.Errorf("%+v\nthe scripts: %+v\nthe model:   %+v", e.command, got, want)
	}
	var heard []message
	for _, m := range e.said {
		if m.heard {
			heard = append(heard, m)
		}
	}
	told := r.heard()
	for proc, locks := range told {
		for i, said := range locks[p.lock] {
			id, number, err := cut(said)
			if err != nil {
				return err
			}
			if len(heard) == 0 || heard[0].id != id || int(id.process()) != proc {
				return fmt.Errorf("%+v\nthe scripts tell process %d %d: %s\nthe model: %v", e.command, proc, i, said,
					heard)
			}
			p.tokens[heard[0].token] = strconv.FormatInt(number, 10)
			heard = heard[1:]
		}
	}
	if len(heard) > 0 {
		return fmt.Errorf("%+v\nthe scripts do not tell %v", e.command, heard)
	}
	return nil
}

// inOrder says whether Redis's tokens are in the order of the model's.
func (p *replay) inOrder() error {
	var tokens []token
	for t := range p.tokens {
		tokens = append(tokens, t)
	}
	slices.Sort(tokens)
	last := int64(-1)
	for _, t := range tokens {
		n, err := strconv.ParseInt(p.tokens[t], 10, 64)
		if err != nil {
			return err
		}
		if n <= last {
			return fmt.Errorf("the model's token %d is %d at Redis, not more than %d", t, n, last)
		}
		last = n
	}
	return nil
}

// Random walks through the model are the same on real servers, after every step.
func TestWalksOnRealServers(t *testing.T) {
	t.Parallel()
	walks := 150
	if deep {
		walks = 5000
	}
	one, two := openReal(t, "{m}:"), openReal(t, "{m}:")
	random := rand.New(rand.NewPCG(1, 2))
	steps, kinds := 0, map[happening]int{}
	for i := range walks {
		p := replay{t: t, now: one, old: two, lock: one.name(i), tokens: map[token]string{}}
		events := walk(random)
		for _, r := range []*real{one, two} {
			r.fail(server{})
			r.listen([2]bool{})
			if err := r.admin.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for j, e := range events {
			steps++
			kinds[e.what]++
			if err := p.play(e, noMistake); err != nil {
				t.Fatalf("walk %d, step %d of %d: %v", i, j, len(events), err)
			}
		}
		if err := p.inOrder(); err != nil {
			t.Fatalf("walk %d: %v", i, err)
		}
	}
	t.Logf("%d walks, %d steps: %v", walks, steps, kinds)
}

// The model's messages stay on the server on which they are said. So do those of grant.lua:
// who listens at a replica hears nothing of a grant that he sees there.
func TestReplicaDoesNotTell(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clients := redistest.StartTopology(t, "replicas:1").Clients(t)
	primary, replica := clients[0], clients[1]
	const base, lock = "{m}:", "lock"
	listen := func(client *redis.Client) *redis.PubSub {
		ear := client.SSubscribe(ctx, base+processes[1])
		t.Cleanup(func() { _ = ear.Close() })
		if _, err := ear.ReceiveTimeout(ctx, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		return ear
	}
	here, there := listen(primary), listen(replica)
	_, err := primary.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		setUp(ctx, pipe, server{owner: 1, marked: true, left: 1, queue: [places]ident{idsEach + 1}, kept: true}, lock)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{lock, "{" + lock + "}:handoff"}
	code, err := primary.Eval(ctx, source(t, "free")+source(t, "grant")+source(t, "release"), keys, base, processes[0],
		idOf(1), "100", "").Int()
	if err != nil || code != 2 {
		t.Fatalf("the release answers %d, %v", code, err)
	}
	if m, err := here.ReceiveTimeout(ctx, 20*time.Second); err != nil {
		t.Fatalf("the primary tells %v: %v", m, err)
	}
	if n, err := primary.Wait(ctx, 1, 20*time.Second).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas have it, %v", n, err)
	}
	if owner := replica.Get(ctx, lock).Val(); owner != idOf(idsEach+1)+"+" {
		t.Fatalf("at the replica the owner is %q", owner)
	}
	if err := replica.SPublish(ctx, base+processes[1], "end").Err(); err != nil {
		t.Fatal(err)
	}
	m, err := there.ReceiveTimeout(ctx, 20*time.Second)
	if message, ok := m.(*redis.Message); err != nil || !ok || message.Payload != "end" {
		t.Fatalf("the replica tells %v, %v", m, err)
	}
}
