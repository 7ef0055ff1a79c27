package handoff

import (
	"context"
	"errors"
	"slices"
	"time"
)

// debt is what this process may have at Redis, and does not want.
type debt struct {
	names
	entry         string // an entry of the queue, or an id alone that was not queued
	indeterminate bool   // a lost command may come late: the debt is paid again, for a while
	since         time.Time
	due           time.Time
	paid          chan struct{} // closed when Redis has answered
	answered      bool
}

const (
	mostDebts = 1024
	// latest is how long commands of a broken connection may still arrive.
	latest = 10 * time.Minute
)

// owe has the keeper give up what an id has at Redis: the lock, and its place if entry is
// one. The channel is closed when Redis has answered.
func (l *Locker) owe(n names, entry string, doubtful bool) <-chan struct{} {
	d := &debt{
		names: n, entry: entry, indeterminate: doubtful,
		since: time.Now(), due: time.Now(), paid: make(chan struct{}),
	}
	if l.hungUp {
		close(d.paid)
		return d.paid
	}
	if l.debts = append(l.debts, d); len(l.debts) > mostDebts {
		l.debts = l.debts[1:]
	}
	l.keep(d.due)
	return d.paid
}

// payDebts pays the debts that are due, and returns when the next one is due.
func (l *Locker) payDebts(now time.Time) (next time.Time) {
	if l.paying {
		return now.Add(20 * time.Millisecond)
	}
	var due []*debt
	l.debts = slices.DeleteFunc(l.debts, func(d *debt) bool { return now.Sub(d.since) > latest || d.answered && !d.indeterminate })
	for _, d := range l.debts {
		if !d.due.After(now) {
			due = append(due, d)
			d.due = now.Add(max(time.Second, now.Sub(d.since))) // what a late command takes stays for at most as long as the command was late
			if !d.answered {
				d.due = now.Add(100 * time.Millisecond)
			}
		}
		if next.IsZero() || d.due.Before(next) {
			next = d.due
		}
	}
	if len(due) > 0 {
		l.paying = true
		l.begin(func() {
			_ = l.pay(l.ctx, due) // what is not answered is due again
			l.mu.Lock()
			defer l.mu.Unlock()
			l.paying = false
		})
	}
	return next
}

// payOff gives up all that is left at Redis when the Locker is closed. Otherwise the next
// release might grant the lock to a place of this process until Redis notices that the
// process is gone.
func (l *Locker) payOff() {
	var err error // after an error the rest ends by its TTL
	for over := false; !over; {
		l.mu.Lock()
		due := slices.DeleteFunc(slices.Clone(l.debts), func(d *debt) bool { return d.answered })
		over = len(due) == 0 || err != nil
		l.hungUp = over
		l.mu.Unlock()
		if !over {
			err = l.payBy(l.deadline, due)
		}
	}
}

// payBy is pay with a deadline.
func (l *Locker) payBy(deadline time.Time, due []*debt) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	return l.pay(ctx, due)
}

// pay asks Redis to forget ids, one lock after the other, for no longer than patience. One lock
// that cannot be asked about, such as on a shard that is down, does not keep the others waiting; pay
// returns its error.
func (l *Locker) pay(ctx context.Context, due []*debt) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var problem error
	for limit := patience; len(due) > 0 && ctx.Err() == nil; {
		first := due[0]
		var args []any
		var same, rest []*debt
		for _, d := range due {
			if d.lock != first.lock {
				rest = append(rest, d)
				continue
			}
			same = append(same, d)
			args = append(args, d.entry)
		}
		if due = rest; len(rest) > 0 {
			limit = min(limit, patience/2)
		}
		sent := time.Now()
		within, done := context.WithTimeout(ctx, limit)
		reply, err := l.redis.run(within, leaveScript, &first.names, l.ids.process, args...)
		done()
		l.mu.Lock()
		if err != nil {
			for _, d := range same {
				d.due = time.Now().Add(patience / 4) // others first
			}
			l.mu.Unlock()
			if problem == nil {
				problem, limit = err, patience/10
			}
			continue
		}
		if told, ok := reply.(string); ok {
			l.told(told, sent, true)
		}
		for _, d := range same {
			if !d.answered {
				d.answered = true
				close(d.paid)
			}
		}
		l.mu.Unlock()
	}
	return errors.Join(problem, ctx.Err())
}
