package handoff

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Patience is the longest time of a call without an answer.
const Patience = patience

// Scripts are the hashes of the scripts that may grant the lock to the next waiter or extend it.
var Scripts = map[string]string{
	"queue": queueScript.hash, "release": releaseScript.hash, "leave": leaveScript.hash,
	"check": checkScript.hash, "extend": extendScript.hash,
}

// ReleaseSource is the source of the script that releases a lock.
var ReleaseSource = releaseScript.source

// Behind returns the Lease behind the value that a caller gets.
func Behind(lease strategies.Lease) *Lease {
	if held, fenced := lease.(*Lease); fenced {
		return held
	}
	return lease.(struct{ unfenced }).unfenced.(*Lease)
}

// Attend sets the time between a process's checks of a lock's state, so that a machine that stands still does not
// cause checks. The Locker must not have been used yet.
func Attend(l *Locker, attention time.Duration) { l.attention, l.echoed = attention, time.Now() }

// Waiting returns how many callers of the process wait for a key with the TTL, and whether all slots that they need
// are queued at Redis.
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

// Asking reports whether a caller's request for a lock that may be free is under way.
func Asking(l *Locker, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lq := l.localQueues[localQueueKey{key, l.config.TTL}]
	return lq != nil && lq.asking != nil
}

// Listener returns the subscription of the process; nil until Redis has confirmed it.
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

// Quiet reports whether the process has no lock, no waiter and no pending release.
func Quiet(l *Locker) bool { return Left(l) == "" }

// Left describes the state that a process keeps for locks that it neither holds nor waits for; empty if there is
// none.
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

// ForgottenTwice forgets a key's local queue a second time when the key's next queue has a waiter. It reports whether
// the next queue is still registered.
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

// GiveUpListening makes the process find a silent subscription as soon as the Locker is being closed. It reports
// whether the process still listened then.
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

// OweLate adds a pending release after Close has ended the context of the tasks, like a command under way that
// arrives after the release of its slot. It returns the id.
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

// Owe adds a pending release of a slot in a key's queue, after it has called before with the queue's name. The
// channel is closed when Redis has answered.
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

// ID returns an id that the process makes for a key's lock and does not keep.
func ID(l *Locker, key string) string { return l.ids.next(l.config.Key(key)) }

// ReplaceGranted replaces a waiter's slot that a check has not found, and that a late command may queue. If granted,
// the slot has got the lock since. It returns whether the process then releases the lock of the slot's id.
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
