package handoff

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Patience is how long a call keeps trying while Redis does not reply.
const Patience = patience

// Scripts contains, by name, the hash of each script that grants or extends the lock. A test replaces these scripts by
// the scripts recorded for a format.
var Scripts = map[string]string{
	"queue": queueScript.hash, "release": releaseScript.hash, "leave": leaveScript.hash,
	"check": checkScript.hash, "extend": extendScript.hash,
}

// ReleaseSource is the source of the script that releases a lock.
var ReleaseSource = releaseScript.source

// Behind returns the *Lease behind the lease that Acquire returned. If the lock has no tokens, Acquire returns a
// wrapper around the *Lease.
func Behind(lease strategies.Lease) *Lease {
	if held, fenced := lease.(*Lease); fenced {
		return held
	}
	return lease.(struct{ unfenced }).unfenced.(*Lease)
}

// Attend sets the interval at which a process checks the state of its locks. With a long interval no check runs during
// a test, even if the machine stalls. The Locker must not have been used yet.
func Attend(l *Locker, attention time.Duration) { l.attention, l.echoed = attention, time.Now() }

// Waiting returns how many callers of the process wait for a key with the given TTL. queued is true if these callers
// have enough slots and Redis has confirmed all of them.
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

// Asking reports whether a caller's direct request for the lock, sent without queueing, is under way.
func Asking(l *Locker, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lq := l.localQueues[localQueueKey{key, l.config.TTL}]
	return lq != nil && lq.asking != nil
}

// Listener returns the subscription of the process, or nil if Redis has not confirmed it. If two calls return different
// results, the process has subscribed again between the calls.
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

// Quiet reports whether the process has no lease, no waiter, no slot and no pending release.
func Quiet(l *Locker) bool { return Left(l) == "" }

// Left names one thing that the process still keeps: a local queue in use, a pending release, a slot or a lease. It
// returns "" if nothing is left.
func Left(l *Locker) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, lq := range l.localQueues {
		if !lq.idle() { // a crowded one is kept for a second
			return fmt.Sprintf("the local queue of %v", key)
		}
	}
	for _, d := range l.pendingReleases {
		if !d.answered {
			return fmt.Sprintf("a pending release: %+v", d)
		}
	}
	if len(l.slots)+len(l.held) > 0 {
		return fmt.Sprintf("%d slots, %d held", len(l.slots), len(l.held))
	}
	return ""
}

// Lines returns the number of the process's local queues.
func Lines(l *Locker) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.localQueues)
}

// ForgottenTwice calls forget twice for a key's local queue, the second time after the key has a new local queue with a
// waiter. It reports whether the new queue is still registered, as it must be.
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

// GiveUpListening waits until the Locker is being closed, then ends its subscriptions as if Redis had stopped replying.
// It reports whether the process was still subscribed at that time.
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

// OweLate adds a pending release after Close has canceled the Locker's tasks. It returns the id that is to be released.
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

// Owe adds a pending release of a slot in the queue of key. If before is not nil, Owe first calls it with the name of
// the queue at Redis. The returned channel is closed when Redis has replied to the release.
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

// ID returns a new id of the process for the lock of key. The process has no slot with this id.
func ID(l *Locker, key string) string { return l.ids.next(l.config.Key(key)) }

// ReplaceGranted calls replace for a waiter's slot that a check did not find at Redis, although a late command may
// still queue it. If granted is true, the slot got the lock after that check. released is true if the process then has
// a pending release of the slot's id.
func ReplaceGranted(l *Locker, key string, granted bool) (released bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lq := l.localQueue(key, l.config.TTL)
	lq.waiters.PushBack(&waiter{over: make(chan struct{})})
	p := lq.short()
	p.coming, p.unsure, p.indeterminate = false, true, true
	if granted {
		p.take(1, time.Now(), end(time.Now(), lq.ttl))
	}
	next := lq.replace(p)
	_, released = l.pendingReleases[p.id]
	if g := l.held[p.id]; g != nil {
		delete(l.held, p.id)
		lq.held = nil
	}
	delete(l.pendingReleases, p.id)
	if next != nil {
		lq.drop(next)
	}
	lq.waiters.Init()
	lq.forget()
	return released
}
