package handoff

import (
	"context"
	"slices"
	"time"
)

// debt is what this process may have at Redis, and does not want.
type debt struct {
	names
	entry         string // or an id alone, that was not queued
	indeterminate bool   // a lost command may come late: it is looked at again, for a while
	since         time.Time
	due           time.Time
	paid          chan struct{} // closed when Redis has answered
	answered      bool
}

const (
	mostDebts = 1024
	// latest is for how long commands of a broken connection are expected.
	latest = 10 * time.Minute
)

// owe has the keeper give up what an id has at Redis: the lock, and its place if it is an
// entry. The channel is closed when it has.
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

// payDebts pays what is due, and returns when the next is.
func (l *Locker) payDebts(now time.Time) (next time.Time) {
	if l.paying {
		return now.Add(20 * time.Millisecond)
	}
	var due []*debt
	l.debts = slices.DeleteFunc(l.debts, func(d *debt) bool { return now.Sub(d.since) > latest || d.answered && !d.indeterminate })
	for _, d := range l.debts {
		if !d.due.After(now) {
			due = append(due, d)
			d.due = now.Add(max(time.Second, now.Sub(d.since))) // what comes late is there for as long again
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

// payOff gives up all that is left at Redis when the Locker is closed: the next release would
// go to places of a process that is no longer there, if Redis has not noticed that yet.
func (l *Locker) payOff() {
	var err error // after which a TTL has to do
	for over := false; !over; {
		l.mu.Lock()
		due := slices.DeleteFunc(slices.Clone(l.debts), func(d *debt) bool { return d.answered })
		over = len(due) == 0 || err != nil
		l.hungUp = over
		l.mu.Unlock()
		if !over {
			err = l.pay(context.Background(), due)
		}
	}
}

// pay asks Redis to forget ids, one lock after the other, for no longer than patience.
func (l *Locker) pay(ctx context.Context, due []*debt) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for len(due) > 0 {
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
		sent := time.Now()
		reply, err := l.redis.run(ctx, leaveScript, &first.names, l.ids.process, args...)
		if err != nil {
			return err
		}
		l.mu.Lock()
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
		due = rest
	}
	return nil
}
