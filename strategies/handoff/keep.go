package handoff

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

const (
	// never is for a keeper that has nothing to do.
	never = time.Hour
	// askAgain is how often a process with waiters sees, at most, that they are queued:
	// somebody may have deleted the lock.
	askAgain = 10 * time.Second
)

// keep sends heartbeats while somebody waits, looks after leases that run out, sends
// what lingers, and breaks a connection on which answers do not come.
func (h *home) keep() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	defer h.late.Stop()
	var answered int64    // when the keeper last looked
	var silence time.Time // since when answers are awaited and none comes; zero if they come
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-h.late.C:
			h.push()
			continue
		case <-h.nudge:
		case <-timer.C:
		}
		now := time.Now()
		read, awaited := h.line.Progress()
		switch {
		case !awaited || read != answered:
			answered, silence = read, time.Time{}
		case silence.IsZero():
			silence = now
		case now.Sub(silence) > h.patience():
			silence = time.Time{}
			h.line.Break()
		}
		timer.Reset(h.round(now, awaited))
		h.line.Flush()
	}
}

// patience is how long an answer may take: go-redis's own bound.
func (h *home) patience() time.Duration {
	if options := h.config.Nodes[0].Options; options != nil && options.ReadTimeout > 0 {
		return options.ReadTimeout
	}
	return 3 * time.Second
}

// round does what is due and returns when to come again.
func (h *home) round(now time.Time, awaited bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awake = awaited || len(h.places) > 0 || len(h.debts) > 0 || h.fault != nil && h.connection != 0
	if !h.awake {
		return never
	}
	due := now.Add(beatEvery)
	if h.connection != 0 && h.fault != nil {
		h.inspect(now)
	}
	if h.connection != 0 {
		h.remind()
	}
	if h.connection != 0 && len(h.places) > 0 {
		h.live(now)
		for _, l := range h.locks {
			h.preserve(l, now)
			if l.check.IsZero() || l.queued == 0 {
				continue
			}
			switch {
			case now.Before(l.check):
			case now.Sub(l.asked) > askAgain:
				h.resume(now, func(w *place) bool { return w.lock == l && w.connection == h.connection })
			default:
				h.look(l, now)
			}
			if l.check.Before(due) {
				due = l.check
			}
		}
	}
	return max(due.Sub(now), time.Millisecond)
}

// preserve keeps a lock from being forgotten as an idle one: where many wait, nothing
// but pushes and releases is sent, and these leave that to the keeper, who looks. The
// caller holds mu, and flushes.
func (h *home) preserve(l *lock, now time.Time) {
	if now.Sub(l.kept) > keepIdle/4 {
		l.kept = now
		h.look(l, now)
	}
}

// wake has the keeper look, if it sleeps. The caller holds mu.
func (h *home) wake() {
	if h.awake {
		return
	}
	h.awake = true
	h.poke()
}

func (h *home) poke() {
	select {
	case h.nudge <- struct{}{}:
	default:
	}
}

// expect has the keeper look after a lease that runs out then; a little later, and
// not all processes at once. A long lease may be released meanwhile, and the next belong
// to a process that dies: so it looks once a TTL. The caller holds mu.
func (h *home) expect(l *lock, at time.Time) {
	if most := time.Now().Add(h.config.TTL); at.After(most) {
		at = most
	}
	spread := min(h.config.TTL/10, 200*time.Millisecond)
	l.check = at.Add(2*time.Millisecond + rand.N(cmp.Or(spread, 1)))
	if time.Until(l.check) < beatEvery {
		h.poke()
	}
}

// look has Redis grant the lock if it is free. The caller holds mu, and flushes.
func (h *home) look(l *lock, now time.Time) {
	l.check = now.Add(h.config.TTL + time.Second)
	h.run(then(func(reply line.Reply) {
		if reply.Err == nil {
			a := parseAnswer(reply.Text)
			h.clock.learn(now, time.Now(), a.now)
			if a.expiry <= a.now && !a.more { // it is free: those behind are asked for, if any
				a.expiry = a.now + beatEvery.Milliseconds()
			}
			h.heard(l, a)
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if transient(reply.Err) {
			h.hangUp(reply.Err)
		}
		if unknown(reply.Err) {
			h.load(acquireScript)
			h.look(l, time.Now())
			h.line.Flush()
			return
		}
		h.expect(l, time.Now().Add(beatEvery))
	}), acquireScript, l.name, "check", keep(h.config.TTL))
}
