package locktest

import (
	"context"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/network"
)

// steps is the number of commands, of a waiter or of a reconnection, before which a release
// is forced. No strategy needs so many before it waits.
const steps = 8

// soon is how long the checks wait for what a strategy may never do.
const soon = 250 * time.Millisecond

// releaseBeforeTheWait releases just before a waiter's first command, then just before its
// second, and so on until it waits. One of these moments is between its look at the lock and
// its subscription.
func releaseBeforeTheWait(s *stage) {
	both := s.several(2, longTTL)
	for step := range steps {
		leases := s.fill(both[0], "key")
		gate := both[1].wire.Hold(network.Write, step)
		w := s.waiter(both[1], "key")
		caught := gate.Catches(soon)
		s.release(leases[0])
		gate.Open()
		w.overdue("a waiter waits on a lock that was released just before its command number %d", step+1)
		w.finish()
		s.release(leases[1:]...)
		if step == 0 && !caught && s.ownConnections(both[1]) {
			s.notTried("its commands cannot be held up: it does not dial with the Options in its Config")
		}
		if !caught {
			return
		}
	}
	s.Logf("a release was forced before each of a waiter's first %d commands; it sends more", steps)
}

// releaseDuringReconnect cuts the connections on which a waiter waits, and releases before it
// has reconnected, then before each command that it sends after that.
func releaseDuringReconnect(s *stage) {
	both := s.several(2, longTTL)
	for step := -3; step < steps; step++ { // the first cuts may come before the waiter listens
		leases := s.fill(both[0], "key")
		w := s.waiter(both[1], "key")
		w.parked()
		time.Sleep(20 * time.Millisecond) // on a slow machine the waiter may not listen yet
		gate := both[1].wire.Hold(network.Dials, 0)
		if step >= 0 {
			gate.Open()
			gate = both[1].wire.Hold(network.Write, step)
		}
		cut, caught := 0, false
		for try := 0; !caught && (try < 2 || cut == 0 && try < 5); try++ { // the waiter may not have listened yet
			cut += s.cut()
			caught = gate.Catches(soon / 2)
		}
		s.release(leases[0])
		gate.Open()
		w.overdue("a waiter waits on a lock that was released while it reconnected (step %d)", max(step+1, 0))
		w.finish()
		s.release(leases[1:]...)
		switch {
		case cut == 0 && step < 0:
			s.notApplicable("its waiters listen on no connection that could be cut")
		case !caught && step < 0 && s.ownConnections(both[1]):
			s.notTried("its reconnection cannot be held up: it does not dial with the Options in its Config")
		case cut == 0 || !caught && step >= 0:
			return
		}
	}
}

// killedConnections cuts the connections on which waiters wait, just before the
// release that should wake them.
func killedConnections(s *stage) {
	const rounds, waiters = 8, 5
	both := s.several(2, longTTL)
	cut := 0
	for round := range rounds {
		leases := s.fill(both[0], "key")
		var waiting []*waiter
		for n := range waiters {
			waiting = append(waiting, s.waiter(both[n%2], "key"))
		}
		time.Sleep(time.Duration(round%4) * 4 * time.Millisecond) // before, while and after they park
		cut += s.cut()
		if round%2 == 0 {
			time.Sleep(time.Millisecond)
		}
		s.release(leases[0])
		for _, w := range waiting {
			w.overdue("a waiter whose connection was killed waits on a lock that is free")
			w.finish()
		}
		s.release(leases[1:]...)
	}
	if cut == 0 {
		s.notApplicable("its waiters listen on no connection that could be killed")
	}
}

// cut kills the connections on which a client listens: those that subscribe, block or use
// client tracking. It returns how many.
func (s *stage) cut() int {
	killed := 0
	for _, o := range s.outside {
		for _, c := range s.connections(o) {
			if o.before[c["id"]] || !strings.ContainsAny(c["flags"], "PbtB") {
				continue
			}
			// 0 if the connection has closed by itself
			n, err := o.ClientKillByFilter(context.Background(), "ID", c["id"]).Result()
			if err != nil {
				s.notJudged("kill a connection: %w", err)
			}
			killed += int(n)
		}
	}
	return killed
}
