package handoff

import (
	"container/list"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

// grace is how long a wait that has ended is held up by what it leaves behind at Redis.
const grace = 200 * time.Millisecond

func (l *Locker) acquire(ctx context.Context, key string) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, strategies.ErrClosed
	}
	ln := l.line(key)
	ln.came++
	number := ln.came
	if ln.idle() && time.Now().After(ln.crowded) {
		held, err := l.ask(ctx, ln)
		if held != nil || !errors.Is(err, strategies.ErrHeld) {
			ln.abandoned()
			l.mu.Unlock()
			return held, err
		}
		if l.closed {
			l.mu.Unlock()
			return nil, strategies.ErrClosed
		}
	}
	w, element := ln.enter(number)
	p := ln.short()
	l.mu.Unlock()
	if p != nil {
		if err := l.queue(ctx, p, "wait"); err != nil && l.leave(ctx, ln, element) {
			return nil, doubt.Because(ctx, err)
		}
	}
	select {
	case <-w.over:
	case <-ctx.Done():
		if l.leave(ctx, ln, element) {
			return nil, ctx.Err()
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	return &w.turn, nil
}

func (l *Locker) try(ctx context.Context, key string) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, strategies.ErrClosed
	}
	ln := l.line(key)
	if !ln.idle() {
		return nil, strategies.ErrHeld
	}
	held, err := l.ask(ctx, ln)
	ln.abandoned()
	return held, doubt.Because(ctx, err)
}

// ask takes a lock that is free, or returns ErrHeld. It is called with the mutex, and
// talks to Redis without.
func (l *Locker) ask(ctx context.Context, ln *line) (*Lease, error) {
	ln.asking = true
	l.mu.Unlock()
	g, err := l.take(ctx, ln)
	l.mu.Lock()
	ln.asking = false
	if g != nil {
		held := new(Lease)
		ln.begin(g)
		ln.hand(g, held)
		return held, nil
	}
	return nil, err
}

// abandoned sees to those who came while somebody asked who does not wait himself.
func (ln *line) abandoned() {
	if ln.waiters.Len() > 0 && len(ln.places) < ln.wanted() {
		ln.look(0)
	}
	ln.forget()
}

// take asks Redis for a free lock. Where the answer is lost it asks again, under the same
// id, which tells whether it got it.
func (l *Locker) take(ctx context.Context, ln *line) (*lease, error) {
	id, since := l.ids.next(), time.Now()
	doubtful := false
	for r := (retry{}); ; {
		l.config.Probe.Attempt()
		owner, clock, err := l.takeOnce(ctx, ln, id)
		switch {
		case err == nil && owner == id:
			g := &lease{id: id, token: clock, since: since, doubtful: doubtful}
			g.until.Set(end(since, l.config.TTL))
			if time.Now().Before(g.until.Get()) {
				return g, nil
			}
			l.giveBack(ctx, ln, id) // the answer came too late
			id, since, doubtful = l.ids.next(), time.Now(), false
			continue
		case err == nil:
			if doubtful {
				l.giveBack(ctx, ln, id)
			}
			return nil, strategies.ErrHeld
		case !lost(err) && !doubtful:
			return nil, err
		}
		doubtful = true
		if !r.wait(ctx) {
			l.giveBack(ctx, ln, id)
			return nil, doubt.Because(ctx, err)
		}
	}
}

func (l *Locker) takeOnce(ctx context.Context, ln *line, id string) (owner string, clock int64, err error) {
	if l.redis.cluster == nil {
		return l.redis.set(ctx, ln.lock, id, l.ttl())
	}
	reply, err := l.redis.run(ctx, queueScript, ln.keys(), ln.base, l.ids.process, id, l.ttl(), "try")
	if told, ok := reply.(string); ok && err == nil {
		owner, clock, _, _ = parse(told)
	}
	return owner, clock, err
}

// queue has a place stand in Redis's queue, where the lock is not free. An error says that
// it does not, and nobody waits by it.
func (l *Locker) queue(ctx context.Context, p *place, mode string) error {
	ln := p.line
	err := l.listen(ctx, ln)
	doubtful := false
	for r := (retry{}); err == nil; {
		l.config.Probe.Attempt()
		if err = l.queueOnce(ctx, p, mode); err == nil {
			return nil
		}
		if !lost(err) && !doubtful {
			break
		}
		doubtful, mode = true, "again"
		if r.wait(ctx) {
			err = nil
		}
	}
	l.mu.Lock()
	waits := ln.drop(p) // else it was granted all the same
	if waits && ln.waiters.Len() > 0 {
		ln.failed()
	}
	l.mu.Unlock()
	if waits && doubtful {
		l.giveBack(ctx, ln, l.entry(p.id))
	}
	if !waits {
		return nil
	}
	return err
}

// queueOnce asks Redis once, without a script where others are known to be queued.
func (l *Locker) queueOnce(ctx context.Context, p *place, mode string) error {
	ln := p.line
	l.mu.Lock()
	follow := mode == "wait" && ln.ahead > 1 && time.Since(ln.kept) < time.Minute
	l.mu.Unlock()
	if follow {
		n, err := l.redis.follow(ctx, ln.queue, l.entry(p.id))
		if err != nil {
			return err
		}
		l.mu.Lock()
		if ln.ahead = n; n > 0 {
			p.queued = true
			ln.known(longest)
		}
		l.mu.Unlock()
		if n > 0 {
			return nil
		}
	}
	sent := time.Now()
	reply, err := l.redis.run(ctx, queueScript, ln.keys(), ln.base, l.ids.process, p.id, l.ttl(), mode)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.kept = sent
	switch reply := reply.(type) {
	case string:
		l.told(reply, p.since, true)
		return nil
	case []any:
		if len(reply) == 2 {
			left, _ := reply[0].(int64)
			ln.ahead, _ = reply[1].(int64)
			p.queued, ln.crowded = true, sent.Add(time.Second)
			ln.known(time.Duration(left) * time.Millisecond)
			return nil
		}
	}
	return unexpected("to queue", reply)
}

// leave ends a wait, unless it has ended by itself: then it returns false. What has been
// granted to somebody whose ctx has ended goes to the next.
func (l *Locker) leave(ctx context.Context, ln *line, element *list.Element) bool {
	w := element.Value.(*waiter)
	l.mu.Lock()
	select {
	case <-w.over:
		l.mu.Unlock()
		if w.err == nil && ctx.Err() != nil {
			settle, done := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer done()
			_ = w.turn.Release(settle)
			return true
		}
		return false
	default:
	}
	ln.waiters.Remove(element)
	p := ln.spare()
	var paid <-chan struct{}
	if p != nil {
		paid = l.owe(ln.names, l.entry(p.id), !p.queued)
	}
	ln.forget()
	l.mu.Unlock()
	await(paid)
	return true
}

// giveBack frees what a lost command may have taken, or queued.
func (l *Locker) giveBack(ctx context.Context, ln *line, entry string) {
	l.mu.Lock()
	paid := l.owe(ln.names, entry, true)
	l.mu.Unlock()
	if ctx.Err() != nil {
		await(paid)
	}
}

func await(paid <-chan struct{}) {
	if paid == nil {
		return
	}
	select {
	case <-paid:
	case <-time.After(grace):
	}
}

// probe does once to a lock of its own what is done to those of others, so that a right
// that is missing shows at once.
func (l *Locker) probe(ctx context.Context, key string) error {
	l.mu.Lock()
	ln := l.line(key)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		ln.forget()
	}()
	if err := l.listen(ctx, ln); err != nil {
		return err
	}
	lock := ln.queue + ":" + l.ids.process // in the slot that it listens for
	n := names{lock, lock + ":queue", ln.base}
	first, second := l.ids.next(), l.ids.next()
	entry := second + " " + strconv.FormatInt(leastTTL.Milliseconds(), 10)
	run := func(s script, args ...any) func() error {
		return func() error {
			_, err := l.redis.run(ctx, s, n.keys(), append([]any{n.base, l.ids.process}, args...)...)
			return err
		}
	}
	for _, step := range []func() error{
		func() error {
			if l.redis.cluster != nil {
				return run(queueScript, first, leastTTL.Milliseconds(), "try")()
			}
			_, _, err := l.redis.set(ctx, n.lock, first, leastTTL.Milliseconds())
			return err
		},
		run(queueScript, second, leastTTL.Milliseconds(), "again"),
		func() error { _, err := l.redis.follow(ctx, n.queue, entry); return err },
		run(checkScript, "", entry),
		func() error {
			_, err := l.redis.run(ctx, extendScript, n.keys()[:1], first, leastTTL.Milliseconds())
			return err
		},
		run(releaseScript, first, "0", ""),
		run(leaveScript, entry, entry),
		func() error {
			command := redis.NewIntCmd(ctx, "spublish", n.base+l.ids.process, "")
			return errors.Join(l.redis.conn.Send(ctx, command), command.Err())
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
