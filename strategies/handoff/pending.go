package handoff

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// debt is what this process may have at Redis, and does not want.
type pendingRelease struct {
	names
	id            string
	entry         string // an entry of the queue, or an id alone that was not queued
	indeterminate bool   // a lost command may come late: the debt is paid again, for a while
	since         time.Time
	due           time.Time
	acked         chan struct{} // closed when Redis has answered
	answered      bool
}

const (
	// mostAnswered is how many debts there are at most before those that Redis has answered are forgotten. Callers
	// and latest bound the others.
	mostAnswered = 1024
	// mostAtOnce is how many a script is asked to pay, so that it does not take too long, and of how many locks at
	// the same time: a Redis that does not answer gets no more scripts than that in patience.
	mostAtOnce = 100
	// latest is how long commands of a broken connection may still arrive.
	latest = 10 * time.Minute
)

// owe has the keeper give up what an id has at Redis: the lock, and its place if entry is
// one. The channel is closed when Redis has answered.
func (l *Locker) addPending(n names, entry string, doubtful bool) <-chan struct{} {
	id, _, _ := strings.Cut(entry, " ")
	d := l.pendingReleases[id]
	if d == nil {
		d = &pendingRelease{names: n, id: id, entry: entry, since: time.Now()}
	}
	d.indeterminate = d.indeterminate || doubtful
	if d.acked == nil || d.answered { // or its turn has come since
		d.acked, d.answered = make(chan struct{}), false
	}
	if l.hungUp {
		close(d.acked)
		return d.acked
	}
	d.due = time.Now()
	l.pendingReleases[id] = d
	l.sendAt(d.due)
	return d.acked
}

// payAt has the keeper pay debts by then.
func (l *Locker) sendAt(due time.Time) {
	if l.keeper.pendingDue.IsZero() || due.Before(l.keeper.pendingDue) {
		l.keeper.pendingDue = due
	}
	l.keep(due)
}

// payDebts pays the debts that are due, those of a lock together, and returns when the next one is
// due.
func (l *Locker) sendDue(now time.Time) (next time.Time) {
	many := len(l.pendingReleases) > mostAnswered
	maps.DeleteFunc(l.pendingReleases, func(_ string, d *pendingRelease) bool {
		return now.Sub(d.since) > latest || many && d.answered
	})
	due := map[string][]*pendingRelease{} // by lock
	for _, d := range l.pendingReleases {
		switch {
		case d.due.After(now):
			if next.IsZero() || d.due.Before(next) {
				next = d.due
			}
		case l.sendingFor[d.lock] || len(due[d.lock]) == mostAtOnce: // the keeper runs again when they are paid
		case due[d.lock] != nil || len(l.sendingFor)+len(due) < mostAtOnce:
			due[d.lock] = append(due[d.lock], d)
		}
	}
	for lock, pendingReleases := range due {
		l.sendingFor[lock] = true
		l.begin(func() {
			_ = l.sendPending(l.ctx, nearEnds, pendingReleases) // what is not answered is due again
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.sendingFor, lock)
			l.sendAt(time.Now())
		})
	}
	return next
}

// payOff gives up all that is left at Redis when the Locker is closed. Otherwise the next
// release might grant the lock to a place of this process until Redis notices that the
// process is gone. It goes on while Redis answers; after an error the rest ends by its TTL. After the last time no
// debts are taken.
func (l *Locker) sendRest(last bool) (err error) {
	for over := false; !over; {
		l.mu.Lock()
		due := slices.Collect(maps.Values(l.pendingReleases))
		due = slices.DeleteFunc(due, func(d *pendingRelease) bool { return d.answered })
		over = len(due) == 0 || err != nil
		l.hungUp = over && last
		l.mu.Unlock()
		if !over {
			err = l.sendPerLock(due)
		}
	}
	return err
}

// payAll pays debts of several locks, all at the same time: one lock that cannot be asked about, such as on a shard
// that is down, does not keep the others waiting.
func (l *Locker) sendPerLock(due []*pendingRelease) error {
	byLock := map[string][]*pendingRelease{}
	for _, d := range due {
		byLock[d.lock] = append(byLock[d.lock], d)
	}
	var all sync.WaitGroup
	problems := make(chan error, len(byLock))
	for _, same := range byLock {
		all.Go(func() {
			for some := range slices.Chunk(same, mostAtOnce) {
				if err := l.sendPending(context.Background(), wholeQueue, some); err != nil {
					problems <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(problems)
	return <-problems
}

// How many entries at each end of a queue leave.lua looks at.
const (
	nearEnds   = 64
	wholeQueue = 0
)

// pay asks Redis to forget ids of one lock. It ends when Redis has answered no caller for patience.
func (l *Locker) sendPending(ctx context.Context, near int, due []*pendingRelease) error {
	args := []any{near}
	for _, d := range due {
		args = append(args, d.entry)
	}
	on, sent := &due[0].names, time.Now()
	var reply any
	_, err := l.persist(ctx, func(ctx context.Context) (err error) {
		reply, err = l.redis.run(ctx, leaveScript, on, args...)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if grantMsg, ok := reply.(string); ok && err == nil {
		defer l.learnOwner(grantMsg, sent)
	}
	for _, d := range due {
		switch {
		case err != nil && !hopeless(err):
			d.due = now.Add(patience / 4)
			continue
		case d.due.After(sent): // its turn has come meanwhile
			continue
		case err == nil && d.indeterminate:
			// What a late command takes stays for at most as long as the command was late.
			d.due = now.Add(max(time.Second, now.Sub(d.since)))
		default:
			delete(l.pendingReleases, d.id)
		}
		if !d.answered {
			d.answered = true
			close(d.acked)
		}
	}
	return err
}

// hopeless says that Redis will refuse a script again for the same reason: the lock is no string,
// its queue no list, or there are no scripts. All other errors pass.
func hopeless(err error) bool {
	refused, ok := errors.AsType[redis.Error](err)
	return ok && (strings.HasPrefix(refused.Error(), "WRONGTYPE") ||
		strings.HasPrefix(refused.Error(), "ERR ") && !says(err, "max number of clients"))
}
