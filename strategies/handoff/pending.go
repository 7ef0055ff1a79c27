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

// pendingRelease is an id that no caller of this process uses any more, but that may still own a lock or have an entry
// in a queue at Redis. The keeper releases that lock or removes that entry.
type pendingRelease struct {
	names
	id            string
	entry         string // the id's entry in the queue, or only the id if it was never queued
	indeterminate bool   // a command without a reply may still arrive, so the release is repeated for up to latest
	since         time.Time
	due           time.Time
	acked         chan struct{} // closed when Redis has replied to the release
	answered      bool
}

const (
	// If there are more than mostAnswered pending releases, the keeper drops those to which Redis has replied. The number
	// of the others has no fixed limit, but each is dropped after latest.
	mostAnswered = 1024
	// mostAtOnce limits the ids that one script releases, so that the script does not take too long. It also limits the
	// number of locks for which such scripts are under way at the same time. If Redis does not respond, it therefore gets
	// at most this many scripts within patience.
	mostAtOnce = 100
	// latest is the longest time after which a command on a broken connection is assumed to still reach Redis.
	latest = 10 * time.Minute
)

// addPending makes the keeper release the lock if the id in entry owns it. If entry also contains a TTL, the keeper
// removes entry from Redis's queue. If doubtful is true, a late command may still take the lock for the id or queue it,
// so the keeper repeats the release. The returned channel is closed when Redis has replied to the release.
func (l *Locker) addPending(n names, entry string, doubtful bool) <-chan struct{} {
	id, _, _ := strings.Cut(entry, " ")
	d := l.pendingReleases[id]
	if d == nil {
		d = &pendingRelease{names: n, id: id, entry: entry, since: time.Now()}
	}
	d.indeterminate = d.indeterminate || doubtful
	if d.acked == nil || d.answered { // answered: the id may have got the lock since that reply
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

// sendAt makes the keeper send pending releases at due or earlier.
func (l *Locker) sendAt(due time.Time) {
	if l.keeper.pendingDue.IsZero() || due.Before(l.keeper.pendingDue) {
		l.keeper.pendingDue = due
	}
	l.keep(due)
}

// sendDue starts sending the pending releases that are due, up to mostAtOnce ids of a lock in one script. It returns
// the time at which the next one is due, or zero if none is planned.
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
		case l.sendingFor[d.lock] || len(due[d.lock]) == mostAtOnce: // wait for the replies to the present ones
		case due[d.lock] != nil || len(l.sendingFor)+len(due) < mostAtOnce:
			due[d.lock] = append(due[d.lock], d)
		}
	}
	for lock, pendingReleases := range due {
		l.sendingFor[lock] = true
		l.begin(func() {
			_ = l.sendPending(l.ctx, nearEnds, pendingReleases) // after an error the releases are due again
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.sendingFor, lock)
			l.sendAt(time.Now())
		})
	}
	return next
}

// sendRest sends all pending releases when the Locker is closed. Otherwise a release by another process could grant the
// lock to a slot of this closed Locker. sendRest continues until Redis has replied to all of them, or until the first
// error; the remaining leases then end when their TTL expires. If last is true, addPending adds no releases afterwards.
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

// sendPerLock sends the pending releases of different locks concurrently, so that a lock on a shard that is down does
// not delay the others.
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

// nearEnds and wholeQueue are the numbers of entries that leave.lua searches at each end of a queue. 0 means all
// entries.
const (
	nearEnds   = 64
	wholeQueue = 0
)

// sendPending releases ids of one lock by one script. It returns an error if Redis has not replied within patience or
// refuses the script. After a temporary error the releases are due again.
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
		case err != nil && !isPermanent(err):
			d.due = now.Add(patience / 4)
			continue
		case d.due.After(sent): // added again since, so this reply does not count
			continue
		case err == nil && d.indeterminate:
			// A late command may still take the lock for this id, so the release is repeated. The interval grows with the age of
			// the release. The lock thus stays taken for at most as long as the command was delayed, or for a second if that is
			// longer.
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

// isPermanent reports whether a script would fail again for the same reason: the lock is not a string, its queue is not
// a list, or the server does not support scripts. All other errors are treated as temporary.
func isPermanent(err error) bool {
	refused, ok := errors.AsType[redis.Error](err)
	return ok && (strings.HasPrefix(refused.Error(), "WRONGTYPE") ||
		strings.HasPrefix(refused.Error(), "ERR ") && !hasReplyPrefix(err, "max number of clients"))
}
