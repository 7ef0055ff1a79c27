//go:build !race

package model

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// edit replaces the text old by new in the scripts.
type edit struct{ old, new string }

// ofTheScripts maps each mistake that can be planted in the scripts to the edits that plant it.
var ofTheScripts = map[mistake][]edit{
	tellBeforeWrite: {
		{"    local entry = redis.call('LPOP', queue)", `
    local first, heard = redis.call('LINDEX', queue, 0), 0
    if first then
      local told = tell(string.match(first, '^%S+'), token + 1)
      heard = redis.pcall('SPUBLISH', ARGV[1] .. string.sub(first, 1, 26), told)
    end
    local entry = redis.call('LPOP', queue)`},
		{"local heard = redis.pcall('SPUBLISH', ARGV[1] .. process, told)", ""},
	},
	offeredAgain:         {{"        return 2\n      end\n", "        return 2\n      end\n      token = token - 1\n"}},
	grantWithoutReceiver: {{"if heard > 0 then", "if heard >= 0 then"}},
	grantUnmarked:        {{"id .. '+', 'PX'", "id, 'PX'"}},
	forgetRefused:        {{"redis.call('LPUSH', queue, entry)\n        redis.call('PEXPIRE', queue, 600000)", ""}},
	queueUnmarked:        {{"else\n  mark(owner)\nend", "end"}},
	takeTwice:            {{"if owner == id or owner == id .. '+' then\n  return tell(id, now())\nend", ""}},
	releaseUnseen: {{
		"redis.pcall('GET', lock) == ARGV[i]", "string.find(redis.pcall('GET', lock) or '', ARGV[i], 1, true)",
	}},
	releaseUnmarked: {{"if owner ~= id and owner ~= id .. '+' then", "if owner ~= id then"}},
	leaveTheQueue: {{
		`  if owner == id then
    told, owner = redis.call('DEL', lock), false
  elseif owner == id .. '+' then
    told, owner = grant(now()), false
  elseif`, "  if",
	}},
	leaveTwice:     {{"told, owner = grant(now()), false", "told = grant(now())"}},
	keepTheSilent:  {{"if seen ~= '' and seen ~= ARGV[2] then", "if false then"}},
	extendShortens: {{"ARGV[4], 'GT')", "ARGV[4])"}},
}

// played is one executed command. question contains the state of the lock before it, and answer the state after it.
type played struct {
	question
	answer
}

// leaves reports whether the command ends the owner's hold of the lock, by a release or by a leave.
func (p played) leaves() bool {
	c, owner := p.command, p.question.server.owner
	return owner != 0 && ((c.verb == release || c.verb == free && p.reply.code != 0) && c.id == owner ||
		c.verb == leave && (c.id == owner || slices.Contains(c.more[:], owner)))
}

// granted reports whether Redis accepted the command and made an id the owner of the lock.
func (p played) granted() bool {
	return p.reply.outcome == answered && p.answer.server.owner != 0 && (p.leaves() || p.question.server.owner == 0)
}

// repairs reports whether Redis accepted a command that must also repair the queue: a check, or a queueing that did not
// get the lock.
func (p played) repairs() bool {
	c := p.command
	return p.reply.outcome == answered && (c.verb == check || c.verb == enqueue && c.mode != try && p.reply.newOwner == 0)
}

// laws are properties that must hold for every command in every state of the lock. Each function reports whether its
// law holds for one command with the states before and after it.
var laws = map[string]func(p played, before, after redisState) bool{
	"a refused command changes nothing and publishes nothing": func(p played, before, after redisState) bool {
		return p.reply.outcome == answered || before == after && len(p.said) == 0
	},
	"an owner keeps the lock until it leaves": func(p played, before, after redisState) bool {
		return before.owner == 0 || before.owner == after.owner || p.leaves()
	},
	"an owner that leaves learns that it had the lock": func(p played, _, _ redisState) bool {
		return !p.leaves() || p.reply.outcome == refused || p.reply.code != 0 || p.reply.newOwner != 0
	},
	"the new owner gets a grant message, and no other id does": func(p played, _, after redisState) bool {
		var newOwners []ident
		for _, m := range p.said {
			if m.heard {
				newOwners = append(newOwners, m.id)
			}
		}
		if p.reply.newOwner != 0 {
			newOwners = append(newOwners, p.reply.newOwner)
		}
		if p.command.verb == set && p.reply.owner == p.command.id {
			newOwners = append(newOwners, p.reply.owner)
		}
		if p.granted() || len(newOwners) > 0 {
			return slices.Equal(newOwners, []ident{after.owner})
		}
		return true
	},
	"tokens grow": func(p played, _, _ redisState) bool {
		last := p.command.token
		for _, m := range p.said {
			if m.token <= last {
				return false
			}
			last = m.token
		}
		return p.reply.newOwner == 0 || p.reply.token > last
	},
	"an owner is marked if others may wait": func(p played, _, after redisState) bool {
		at := p.command.verb == set || p.command.mode == try // these take a free lock before the waiters
		must := p.repairs() || p.granted() && !at
		return !must || after.owner == 0 || after.queue[0] == 0 || after.marked
	},
	"a lock is not left free while reachable waiters are queued": func(p played, before, after redisState) bool {
		left := p.leaves() && before.marked || p.command.verb == check
		return !left || p.reply.outcome == refused || after.owner != 0 || after.queue[0] == 0 || p.reply.code == 3
	},
	"a waiter stays in the queue": func(p played, before, after redisState) bool {
		c := p.command
		return !slices.ContainsFunc(before.queue[:before.length()], func(id ident) bool {
			unheard := slices.ContainsFunc(p.said, func(m message) bool { return m.id == id && !m.heard })
			left := c.verb == leave && (c.id == id || slices.Contains(c.more[:], id))
			silent := c.verb == check && c.seen != 0 && before.owner == 0 && c.seen.process() == id.process()
			return after.owner != id && after.find(id) < 0 && !unheard && !left && !silent
		})
	},
	"an owner that asks again gets its grant message again": func(p played, before, after redisState) bool {
		asks := p.command.verb == enqueue && p.command.id == before.owner
		return !asks || p.reply.newOwner == before.owner && before == after
	},
	"an id whose lease ran out does not get the next lease": func(p played, before, after redisState) bool {
		c := p.command
		silent := c.verb == check && c.seen != 0 && c.seen.process() != c.by && before.owner == 0
		return !silent || p.reply.outcome == refused || after.owner == 0 || after.owner.process() != c.seen.process()
	},
	"an extension does not shorten": func(p played, before, after redisState) bool {
		return p.command.verb != extend || after.left >= before.left
	},
	"a queue has a TTL": func(p played, _, after redisState) bool {
		return !p.repairs() || after.queue[0] == 0 || after.kept
	},
}

// smallLocks returns all commands of process 0 in all small states of the lock. A small state has at most two queued
// ids (three if deep is true). Each queue is combined with each fault and each owner: no id, or an id of either
// process, with or without the mark.
func smallLocks() (all []question) {
	const a1, a2, a3, b1, b2 = ident(1), ident(2), ident(3), ident(idsEach + 1), ident(idsEach + 2)
	commands := []command{
		{verb: leave, id: a1, more: [2]ident{a2}}, {verb: leave, id: a3, more: [2]ident{a1, a2}},
	}
	for _, id := range []ident{a1, a2} {
		commands = append(commands,
			command{verb: set, id: id}, command{verb: follow, id: id},
			command{verb: release, id: id, token: anyToken}, command{verb: release, id: id, token: anyToken, entry: a3},
			command{verb: release, id: id}, command{verb: free, id: id},
			command{verb: leave, id: id, alone: true}, command{verb: leave, id: id, more: [2]ident{id}},
			command{verb: leave, id: id}, command{verb: extend, id: id, ttl: 1},
			command{verb: extend, id: id, ttl: longest})
		for m := wait; m <= front; m++ {
			commands = append(commands, command{verb: enqueue, mode: m, id: id})
		}
	}
	for _, id := range []ident{a1, a3} {
		for _, seen := range []ident{0, a1, b1} {
			commands = append(commands, command{verb: check, id: id, seen: seen})
		}
	}
	queues := [][slots]ident{{}}
	for _, first := range []ident{a1, a2, b1, b2} {
		queues = append(queues, [slots]ident{first})
		for _, second := range []ident{a2, b1, b2} {
			queues = append(queues, [slots]ident{first, second})
			for _, third := range []ident{a1, a2, b1} {
				if deep {
					queues = append(queues, [slots]ident{first, second, third})
				}
			}
		}
	}
	for _, how := range []redisState{
		{},
		{hears: [2]bool{false, true}},
		{fault: refusesWrite, hears: [2]bool{false, true}},
		{fault: refusesGrowth, hears: [2]bool{false, true}},
		{mute: true, hears: [2]bool{false, true}},
	} {
		for _, s := range []redisState{
			{},
			{owner: a1, left: 1},
			{owner: a1, marked: true, left: 2},
			{owner: b1, left: 2},
			{owner: b1, marked: true, left: 1},
		} {
			s.hears, s.fault, s.mute = how.hears, how.fault, how.mute
			for i, queue := range queues {
				s.queue, s.kept = queue, queue[0] != 0 && i%3 != 0
				for _, c := range commands {
					all = append(all, question{s, c})
				}
			}
		}
	}
	return all
}

// The scripts in this repository satisfy all laws for every command in every small state. Each mistake planted in the
// scripts breaks a law, which shows that the laws are strict enough.
func TestScriptLaws(t *testing.T) {
	t.Parallel()
	ours := openScripts(t)
	all := smallLocks()
	// broken executes the questions in pipelines of 200 and returns the first law that is broken, or "" if all hold.
	broken := func(s *scripts, questions []question) string {
		for some := range slices.Chunk(questions, 200) {
			reads := make([]func() (answer, error), len(some))
			for mute, client := range s.clients {
				_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
					for i, q := range some {
						if q.server.mute == mute {
							reads[i] = s.put(pipe, q)
						}
					}
					return nil // each command has its own error
				})
			}
			for i, q := range some {
				a, err := reads[i]()
				if err != nil {
					t.Fatalf("%+v: %v", q, err)
				}
				for law, holds := range laws {
					if !holds(played{q, a}, q.server, a.server) {
						t.Logf("%+v\n%+v", q, a)
						return law
					}
				}
			}
		}
		return ""
	}
	if law := broken(ours, all); law != "" {
		t.Errorf("the law is broken: %s", law)
	}
	for planted := range ofTheScripts {
		s := ours.with(planted)
		changed := slices.DeleteFunc(slices.Clone(all), func(q question) bool {
			return s.texts[q.command.verb].Hash() == ours.texts[q.command.verb].Hash()
		})
		if broken(s, changed) == "" {
			t.Errorf("the planted mistake is not found: %s", planted)
		}
	}
	t.Logf("%d questions", len(all))
}
