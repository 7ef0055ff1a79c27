package stream

import "container/list"

// group are the waiters of one Locker for one lock.
type group struct {
	stream  string
	seen    position  // up to where the stream has been read
	waiters list.List // of *waiter, in the order in which they came
}

// waiter is woken through wake, which has room for one permit. Several permits become one:
// one later attempt serves them all.
type waiter struct {
	group *group
	place *list.Element
	wake  chan permit
}

// permit tells a waiter to try once more.
type permit struct {
	all bool  // every waiter has got one
	err error // no try can help: give up with this error
}

// join adds a waiter whose attempt has found that entry to be the stream's last.
// It never blocks: whatever is added later will be read.
func (r *reader) join(stream string, last position) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start()
	g := r.groups[stream]
	if g == nil {
		g = &group{stream: stream, seen: last}
		r.groups[stream] = g
		r.read(stream)
	}
	w := &waiter{group: g, wake: make(chan permit, 1)}
	w.place = g.waiters.PushBack(w)
	return w
}

// leave removes a waiter. A permit that it has not used goes to the next waiter, and with
// handOn one that it has used in vain does too.
func (r *reader) leave(w *waiter, handOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := w.group
	g.waiters.Remove(w.place)
	select {
	case <-w.wake:
		handOn = true
	default:
	}
	if handOn {
		g.wakeFirst()
	}
	if g.waiters.Len() == 0 {
		delete(r.groups, g.stream)
	}
}

// wakeAll has all waiters for w's lock try.
func (r *reader) wakeAll(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.group.wakeAll(permit{all: true})
}

// wakeFirst gives a permit to the waiter that has waited longest. The caller holds the reader's
// mu.
func (g *group) wakeFirst() {
	if first := g.waiters.Front(); first != nil {
		first.Value.(*waiter).permit(permit{})
	}
}

// wakeAll gives every waiter a permit. The caller holds the reader's mu.
func (g *group) wakeAll(p permit) {
	for e := g.waiters.Front(); e != nil; e = e.Next() {
		e.Value.(*waiter).permit(p)
	}
}

func (w *waiter) permit(p permit) {
	select {
	case w.wake <- p:
	default:
	}
}
