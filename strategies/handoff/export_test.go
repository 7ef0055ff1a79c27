package handoff

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Patience bounds a call.
const Patience = patience

// Scripts are the hashes of those that may give the lock to the next, or keep it.
var Scripts = map[string]string{
	"queue": queueScript.hash, "release": releaseScript.hash, "leave": leaveScript.hash,
	"check": checkScript.hash, "extend": extendScript.hash,
}

// ReleaseSource is of the script that releases a lock.
var ReleaseSource = releaseScript.source

// Behind is the Lease behind what a caller gets.
func Behind(lease strategies.Lease) *Lease {
	if held, fenced := lease.(*Lease); fenced {
		return held
	}
	return lease.(struct{ unfenced }).unfenced.(*Lease)
}

// Attend has a process do for so long without a look at what others do, so that a machine
// that stands still does not make it look. It must not have been used yet.
func Attend(l *Locker, attention time.Duration) { l.attention, l.echoed = attention, time.Now() }

// Waiting is how many of the process wait for a key with that TTL, and whether all that they need at
// Redis is queued there.
func Waiting(l *Locker, key string, ttl time.Duration) (n int, queued bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lq := l.localQueues[localQueueKey{key, ttl}]
	if lq == nil {
		return 0, false
	}
	if lq.asking != nil || lq.looking || len(lq.slots) < lq.wanted() {
		return lq.waiters.Len(), false
	}
	for _, p := range lq.slots {
		if !p.queued {
			return lq.waiters.Len(), false
		}
	}
	return lq.waiters.Len(), true
}

// Asking says whether somebody sees whether the lock can be had at once.
func Asking(l *Locker, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lq := l.localQueues[localQueueKey{key, l.config.TTL}]
	return lq != nil && lq.asking != nil
}

// Listener is what the process is told by; nil while Redis has not confirmed that.
func Listener(l *Locker) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.subscribers {
		for _, c := range s.channels {
			if c.isReady {
				return s
			}
		}
	}
	return nil
}

// Quiet says whether the process has nothing to do with any lock, and owes nothing.
func Quiet(l *Locker) bool { return Left(l) == "" }

// Left names what a process still has of locks that it neither holds nor waits for; empty if nothing.
func Left(l *Locker) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, lq := range l.localQueues {
		if !lq.idle() { // one that was crowded is kept for a second
			return fmt.Sprintf("the line of %v", key)
		}
	}
	for _, d := range l.pendingReleases {
		if !d.answered {
			return fmt.Sprintf("a debt: %+v", d)
		}
	}
	if len(l.slots)+len(l.held) > 0 {
		return fmt.Sprintf("%d places, %d held", len(l.slots), len(l.held))
	}
	return ""
}

// Lines is of how many locks the process keeps something.
func Lines(l *Locker) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.localQueues)
}

// ForgottenTwice has a key's line be forgotten again when the next one of the key has a
// waiter, and says whether that one is still looked after.
func ForgottenTwice(l *Locker, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.localQueue(key, l.config.TTL)
	before.forget()
	next := l.localQueue(key, l.config.TTL)
	defer next.forget()
	e := next.waiters.PushBack(new(waiter))
	defer next.waiters.Remove(e)
	before.forget()
	return l.localQueues[next.localQueueKey] == next
}

// GiveUpListening has the process find that Redis does not answer where it listens, as soon as the
// Locker is being closed. It says whether it still listened then.
func GiveUpListening(l *Locker) bool {
	for {
		l.mu.Lock()
		if l.closed {
			break
		}
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	defer l.mu.Unlock()
	n := len(l.subscribers)
	for _, s := range l.subscribers {
		s.end(errSilent)
	}
	return n > 0
}

// OweLate has the process owe what an id may have of a key when Close has ended its tasks' context, as a
// command does that was under way and has come after what was to give its place up. It returns the id.
func OweLate(l *Locker, key string) (id string) {
	id = ID(l, key)
	lock := l.config.Key(key)
	l.tasks.Go(func() {
		<-l.ctx.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.addPending(namesOf(lock, l.base, false), id, true)
	})
	return id
}

// Owe has the process owe a place in a key's queue, after before has seen the queue's name. The
// channel is closed when it is paid.
func Owe(l *Locker, key string, before func(queue string)) <-chan struct{} {
	l.mu.Lock()
	lq := l.localQueue(key, l.config.TTL)
	l.mu.Unlock()
	if before != nil {
		before(lq.queue)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer lq.forget()
	return l.addPending(lq.names, entry(l.ids.next(lq.lock), l.config.TTL), false)
}

// ID is one that the process makes for a key's lock and does not remember.
func ID(l *Locker, key string) string { return l.ids.next(l.config.Key(key)) }
