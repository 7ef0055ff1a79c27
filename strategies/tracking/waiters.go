package tracking

import (
	"container/list"
	"time"
)

// group are the waiters of one Locker for one lock.
//
// A waiter sleeps only while one of these is true: Redis has a mark that was made after the
// last known change; a look is about to make one; or another waiter is about to try, and a
// look follows.
type group struct {
	name    string
	waiters list.List // of *waiter, in the order in which they came
	woken   *waiter   // whose try is awaited
	asked   bool      // a look is planned or running
	stale   bool      // a change was heard of since then
	bound   time.Time // when to try even if nothing is heard
}

// waiter is woken through wake, which has room for one permit: nil means to try once more, an
// error to give up. Several permits become one: one later attempt serves them all.
type waiter struct {
	group *group
	place *list.Element
	wake  chan error
}

// join adds a waiter whose attempt has failed. It never blocks.
func (t *tracker) join(name string) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start()
	g := t.groups[name]
	if g == nil {
		g = &group{name: name}
		t.groups[name] = g
		t.limit(g, t.ttl)
		t.want(g)
	}
	w := &waiter{group: g, wake: make(chan error, 1)}
	w.place = g.waiters.PushBack(w)
	return w
}

// tried records that a waiter has tried or, if over, that it waits no more.
func (t *tracker) tried(w *waiter, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := w.group
	if over {
		g.waiters.Remove(w.place)
	}
	if g.waiters.Len() == 0 {
		delete(t.groups, g.name)
		delete(t.queue, g.name)
		return
	}
	if g.woken == w {
		g.woken = nil
		t.want(g)
	}
}

// want has the tracker look at a lock. The caller holds mu.
func (t *tracker) want(g *group) {
	g.asked, g.stale = true, false
	t.queue[g.name] = struct{}{}
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// wantAll has the tracker look at all locks again: marks or news may have been lost.
func (t *tracker) wantAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.groups {
		t.want(g)
	}
}

// wanted returns the locks to look at now.
func (t *tracker) wanted() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.queue {
		names = append(names, name)
	}
	clear(t.queue)
	return names
}

// answered records what a look has found: how long the lock lasts, if it is held.
func (t *tracker) answered(name string, held bool, left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[name]
	if g == nil {
		return
	}
	if _, again := t.queue[name]; again {
		return // since this look another one was asked for
	}
	g.asked = false
	switch {
	case g.woken != nil: // there will be another look
	case !held || g.stale:
		g.wakeFirst()
	default:
		t.limit(g, left)
	}
}

// changed records that a lock has changed since it was looked at.
func (t *tracker) changed(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch g := t.groups[name]; {
	case g == nil:
	case g.asked: // perhaps before that look, perhaps after it
		g.stale = true
	case g.woken == nil:
		g.wakeFirst()
	}
}

// limit has a waiter try after that time at the latest. The caller holds mu.
func (t *tracker) limit(g *group, left time.Duration) {
	g.bound = time.Now().Add(left)
	if t.next.IsZero() || g.bound.Before(t.next) {
		t.next = g.bound
	}
}

// overdue wakes a waiter of each lock whose time is over. It returns when to check again; the
// zero time means never.
func (t *tracker) overdue() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.next.IsZero() || now.Before(t.next) {
		return t.next
	}
	t.next = time.Time{}
	for _, g := range t.groups {
		left := g.bound.Sub(now)
		if left <= 0 {
			left = t.ttl // in case the wake-up has no effect
			if g.woken == nil {
				g.wakeFirst()
			}
		}
		t.limit(g, left)
	}
	return t.next
}

// wakeAll has every waiter try, or give up with err.
func (t *tracker) wakeAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.groups {
		for e := g.waiters.Front(); e != nil; e = e.Next() {
			e.Value.(*waiter).permit(err)
		}
	}
}

// wakeFirst gives a permit to the waiter that has waited longest. The caller holds the
// tracker's mu.
func (g *group) wakeFirst() {
	g.woken = g.waiters.Front().Value.(*waiter)
	g.woken.permit(nil)
}

func (w *waiter) permit(err error) {
	select {
	case w.wake <- err:
	default:
	}
}
