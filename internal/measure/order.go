package measure

import "github.com/lockbench/lockbench/results"

// Waiter is a client's position among the clients that wait for a key or hold it. A client wants one
// key at a time, so one Waiter serves it for the whole run.
type Waiter struct {
	client    int
	since     int64 // start of its wait
	asked     int64 // call of Acquire; in an open loop it may be later than since
	ticket    int   // slot among the arrivals
	grants    int64 // number of grants of the key when it arrived
	ahead     int64 // number of waiters when it arrived
	withdrawn int64 // waiters that had given up when it arrived, since the last renumber
	place     int   // index among the holders
	passed    int64 // number of bypasses when arrivals.settle was called
}

// NewWaiter returns the Waiter of the client with this number.
func NewWaiter(client int) *Waiter { return &Waiter{client: client} }

// arrivals keeps the waiters in order of arrival. For any waiter it counts how many waiters arrived earlier and how
// many of those gave up. Slots are used in order. When no slot is left, they are renumbered, so that every step takes
// amortised O(log n).
type arrivals struct {
	places    []*Waiter // by slot; nil if the waiter has left
	still     fenwick   // 1 for each slot whose waiter still waits
	quit      fenwick   // 1 for each slot whose waiter gave up
	next      int
	waiting   int
	withdrawn int64
	settled   bool // no further bypasses are counted
}

func (a *arrivals) arrive(w *Waiter, since, grants int64) {
	if a.next == len(a.places) {
		a.renumber()
	}
	*w = Waiter{
		client: w.client, since: since, ticket: a.next, grants: grants, ahead: int64(a.waiting),
		withdrawn: a.withdrawn,
	}
	a.places[a.next] = w
	a.still.add(a.next, 1)
	a.next++
	a.waiting++
}

// before returns the number of waiters that arrived before w and still wait.
func (a *arrivals) before(w *Waiter) int64 { return a.still.sum(w.ticket) }

// quitBefore returns the number of waiters ahead of w that gave up after w arrived: all that gave up ahead of w, minus
// those that had given up before w arrived.
func (a *arrivals) quitBefore(w *Waiter) int64 { return a.quit.sum(w.ticket) - w.withdrawn }

// bypassed returns how many later arrivals have acquired the lock since w arrived: all grants since then, minus those
// to waiters ahead of w. before is the number of waiters that are still ahead. After settle the number does not change.
func (a *arrivals) bypassed(w *Waiter, before, grants int64) int64 {
	if a.settled {
		return w.passed
	}
	return grants - w.grants - (w.ahead - before - a.quitBefore(w))
}

// rebase restarts the count of bypasses for all current waiters. grants is the current number of grants.
func (a *arrivals) rebase(grants int64) {
	for _, w := range a.places[:a.next] {
		if w != nil {
			w.grants, w.ahead, w.withdrawn = grants, a.before(w), a.quit.sum(w.ticket)
		}
	}
}

// settle ends the count of bypasses. grants is the current number of grants.
func (a *arrivals) settle(grants int64) {
	for _, w := range a.places[:a.next] {
		if w != nil {
			w.passed = a.bypassed(w, a.before(w), grants)
		}
	}
	a.settled = true
}

// remove removes a waiter that has acquired the lock.
func (a *arrivals) remove(w *Waiter) {
	a.places[w.ticket] = nil
	a.still.add(w.ticket, -1)
	a.waiting--
}

// withdraw removes a waiter that gave up.
func (a *arrivals) withdraw(w *Waiter) {
	a.remove(w)
	a.quit.add(w.ticket, 1)
	a.withdrawn++
}

// renumber moves the waiters to the first slots. Afterwards at least half of the slots are free, so renumber is rarely
// called.
func (a *arrivals) renumber() {
	size := max(64, len(a.places))
	for size < 4*a.waiting {
		size *= 2
	}
	waiting := a.places[:a.next]
	for _, w := range waiting {
		if w != nil { // preserve the counts that clearing the trees would lose
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
			a.places[a.next] = w // a.next is never larger than the index being read
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

// sum returns the sum of all slots before the given one.
func (f fenwick) sum(slot int) int64 {
	var sum int64
	for i := slot; i > 0; i -= i & -i {
		sum += int64(f[i])
	}
	return sum
}

// Ages appends the time that each waiter of the key has waited at the instant now.
func (k *Key) Ages(ages []results.Wait, now int64) []results.Wait {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.arrivals.places[:k.arrivals.next] {
		if w != nil {
			ages = append(ages, results.Wait{Client: w.client, NS: max(0, now-w.since)})
		}
	}
	return ages
}
