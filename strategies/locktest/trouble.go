package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// flushedScripts empties the servers' script cache before each acquire, wait and release.
func flushedScripts(s *stage) {
	both := s.several(2, longTTL)
	flush := func() {
		for _, o := range s.outside {
			s.must("flush the scripts", o.ScriptFlush(context.Background()).Err())
		}
	}
	for range 3 {
		flush()
		leases := s.fill(both[0], "key")
		flush()
		s.passOn(leases, both[1], "key", flush)
	}
}

// lostReply lets an acquire time out while the servers are paused. When the servers continue, they grant a lock to a
// client that has given up. This lock must not stay taken.
func lostReply(s *stage) {
	if s.fixture.Pause == nil || s.fixture.Resume == nil {
		s.notTried("the fixture cannot pause and resume its servers")
	}
	if s.info.BlackBox {
		s.notApplicable("it is an adapter of a third-party library, and only the library could release such a lock")
	}
	both := s.several(2, longTTL)
	s.release(s.acquire(both[0], "key")) // this opens its connection
	limit := 50 * time.Millisecond
	if s.ownConnections(both[0]) { // the suite cannot see when its command is sent
		limit *= 8
	}
	for attempt := 1; ; attempt, limit = attempt+1, 2*limit {
		asked := time.Now()
		granted := s.unanswered(both[0], limit)
		sent := s.ownConnections(both[0]) || !both[0].wire.LastWrite().Before(asked)
		if sent && !granted {
			break
		}
		switch {
		case attempt == attempts && granted:
			s.notTried("the lock's acquire waits for the reply although its context has ended: go-redis ends the call only " +
				"with ContextTimeoutEnabled")
		case attempt == attempts:
			s.notJudged("an acquire with a timeout of %v sends no command", limit)
		case !granted:
			s.Logf("the acquire timed out before it sent a command; the check tries again")
		}
	}
	if !s.eventually(func() bool { return s.free(both[1], "key") }) {
		s.fatalf("an acquire timed out before its reply arrived, and its lock is not free")
	}
	s.release(s.fill(both[1], "key")...)
}

// unanswered lets an acquire time out while the servers are paused. It reports whether the acquire returned a lease
// although its context had timed out.
func (s *stage) unanswered(i *instance, limit time.Duration) bool {
	s.disturb("pause the servers", s.fixture.Pause)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var resumed sync.WaitGroup
	var resume error
	resumed.Go(func() {
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond)
		resume = s.fixture.Resume()
	})
	lease, err := i.Acquire(ctx, "key")
	resumed.Wait()
	s.must("resume the servers", resume)
	switch {
	case err == nil: // the client ignored its deadline and received the reply
		s.release(lease)
	case !errors.Is(err, context.DeadlineExceeded):
		s.broken(ending, "an acquire that timed out returned %q", err)
	}
	return err == nil
}

// killable returns functions that kill a server and start it again without data.
func (s *stage) killable() (kill, revive func(node int)) {
	if s.fixture.Kill == nil || s.fixture.Revive == nil {
		s.notTried("the fixture cannot kill and revive its servers")
	}
	dead := map[int]bool{}
	s.Cleanup(func() { // the next check uses the same servers
		for node := range dead {
			_ = s.fixture.Revive(node)
		}
	})
	kill = func(node int) {
		dead[node] = true
		s.disturb("kill a server", func() error { return s.fixture.Kill(node) })
	}
	revive = func(node int) {
		delete(dead, node)
		s.disturb("revive a server", func() error { return s.fixture.Revive(node) })
	}
	return kill, revive
}

// restartedServer kills the servers while a lock has a holder and waiters, and starts them again without data. Each
// waiter must get the lock or an error, and the same instances must continue to work.
func restartedServer(s *stage) {
	kill, revive := s.killable()
	// The waiters are in other instances than the holder. A waiter of the holder's instance may rightly continue to wait,
	// because that instance knows that the holder is alive.
	all := s.several(3, longTTL)
	lease := s.fill(all[2], "key")[0]
	var waiting []*waiter
	for n := range 4 {
		waiting = append(waiting, s.waiter(all[n%2], "key"))
	}
	waiting[3].parked()
	for node := range s.outside {
		kill(node)
	}
	for node := range s.outside {
		revive(node)
	}
	s.forgotten()
	for _, w := range waiting {
		if !w.within(s.patience) { // an error ends the wait too
			s.fatalf("a waiter is still waiting for a lock that the restarted server does not have")
		}
	}
	_ = lease.Release(context.Background()) // may fail: the lock is gone, and its connection may be broken
	for _, i := range all {
		s.recovers(i)
		s.release(s.fill(i, "key")...)
	}
}

// forgotten clears the recorded ids of earlier connections, because restarted servers may use these ids again.
func (s *stage) forgotten() {
	for _, o := range s.outside {
		clear(o.before)
	}
}

// recovers waits until each instance can acquire again. It tolerates errors at first, because connections from before
// the fault may be broken.
func (s *stage) recovers(all ...*instance) {
	for _, i := range all {
		var last error
		if !s.eventually(func() bool {
			var lease strategies.Lease
			last = within(s.patience, func(ctx context.Context) (err error) {
				lease, err = i.Acquire(ctx, "key")
				return err
			})
			if last == nil {
				_ = s.again(lease) // it may have run out
			}
			return last == nil
		}) {
			s.fatalf("the servers are up again, but an acquire still returns %q", last)
		}
	}
}

// deadNodes kills a minority of a quorum's nodes. The lock must continue to work. Then deadNodes kills more nodes, so
// that no client may get the lock, and finally revives all of them.
func deadNodes(s *stage) {
	kill, revive := s.killable()
	both := s.several(2, longTTL)
	nodes := len(s.outside)
	minority := (nodes - 1) / 2
	for node := range minority {
		kill(node)
	}
	s.recovers(both...)
	for turn := range 4 {
		s.passOn(s.fill(both[turn%2], "key"), both[(turn+1)%2], "key", func() {})
	}

	last := nodes - minority - 1 // the number of nodes still alive, less than a majority
	for node := minority; node < nodes-last; node++ {
		kill(node)
	}
	w := s.waiterFor(both[0], "key", both[0].Acquire)
	w.within(time.Second) // the acquire may also fail by itself
	w.end()
	if w.err == nil {
		s.fatalf("the lock was granted although only %d of %d nodes were alive", last, nodes)
	}

	for node := range nodes - last {
		revive(node)
	}
	s.forgotten()
	s.recovers(both...)
}
