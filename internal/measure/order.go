package measure

// Waiter is a client's place among those waiting for a key, or holding it. A
// client is after one key at a time, so one Waiter serves it for the whole run.
type Waiter struct {
	client    int
	since     int64 // it has been waiting
	ticket    int   // slot among the arrivals
	grants    int64 // the key's grants when it arrived
	ahead     int64 // those waiting when it arrived
	withdrawn int64 // the key's give-ups when it arrived
	place     int   // among the holders

	meanwhile int64 // grants of the key while it waited last
	vain      int   // waits since its last lease that ended without one
}

// NewWaiter is the place of a client.
func NewWaiter(client int) *Waiter { return &Waiter{client: client} }

// arrivals keeps who is waiting in order of arrival, and counts for any waiter
// how many are ahead of it and how many of them gave up. The slots are handed out
// in order and renumbered when they run out, so that every step is O(log n).
type arrivals struct {
	places    []*Waiter // nil: gone
	still     fenwick   // who waits, by slot
	quit      fenwick   // who gave up, by slot
	next      int
	waiting   int
	withdrawn int64
}

func (a *arrivals) arrive(w *Waiter, since, grants int64) {
	if a.next == len(a.places) {
		a.renumber()
	}
	*w = Waiter{client: w.client, since: since, ticket: a.next, grants: grants, ahead: int64(a.waiting), withdrawn: a.withdrawn, vain: w.vain}
	a.places[a.next] = w
	a.still.add(a.next, 1)
	a.next++
	a.waiting++
}

// before counts those who arrived before w and still wait.
func (a *arrivals) before(w *Waiter) int64 { return a.still.sum(w.ticket) }

// quitBefore counts those ahead of w that gave up since it arrived: of all that
// ever gave up ahead of it, those it did not find gone.
func (a *arrivals) quitBefore(w *Waiter) int64 { return a.quit.sum(w.ticket) - w.withdrawn }

// bypassed is how many later arrivals have got the lock since w arrived, when so
// many were granted in all and so many still wait before it: those who got it
// meanwhile, less those of them that were ahead.
func (a *arrivals) bypassed(w *Waiter, before, grants int64) int64 {
	return grants - w.grants - (w.ahead - before - a.quitBefore(w))
}

// remove takes a waiter out that got the lock.
func (a *arrivals) remove(w *Waiter) {
	a.places[w.ticket] = nil
	a.still.add(w.ticket, -1)
	a.waiting--
}

// withdraw takes a waiter out that did not.
func (a *arrivals) withdraw(w *Waiter) {
	a.remove(w)
	a.quit.add(w.ticket, 1)
	a.withdrawn++
}

// renumber moves the waiting to the front; at least half of the slots are free
// afterwards, so that it happens seldom.
func (a *arrivals) renumber() {
	size := max(64, len(a.places))
	for size < 4*a.waiting {
		size *= 2
	}
	waiting := a.places[:a.next]
	for _, w := range waiting {
		if w != nil { // what the trees forget below is settled here
			w.ahead -= a.quitBefore(w)
			w.withdrawn = 0
		}
	}
	if size == len(a.places) {
		clear(a.still)
		clear(a.quit)
	} else {
		a.places, a.still, a.quit = make([]*Waiter, size), make(fenwick, size+1), make(fenwick, size+1)
	}
	a.next, a.withdrawn = 0, 0
	for _, w := range waiting {
		if w != nil {
			w.ticket = a.next
			a.places[a.next] = w // never ahead of the one being read
			a.still.add(a.next, 1)
			a.next++
		}
	}
	clear(a.places[a.next:])
}

// fenwick is a tree of prefix sums (P. M. Fenwick, A New Data Structure for
// Cumulative Frequency Tables, Software: Practice and Experience 24, 1994).
type fenwick []int32

func (f fenwick) add(slot int, n int32) {
	for i := slot + 1; i < len(f); i += i & -i {
		f[i] += n
	}
}

// sum is over the slots before one.
func (f fenwick) sum(slot int) int64 {
	var sum int64
	for i := slot; i > 0; i -= i & -i {
		sum += int64(f[i])
	}
	return sum
}
