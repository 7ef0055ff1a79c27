package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// flushedScripts empties the script cache between any two steps.
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

// lostReply ends an acquire while the server withholds its reply. Redis then grants a lock that no client knows of,
// and this lock must not stay taken.
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
	if s.ownConnections(both[0]) { // the suite cannot observe its commands
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
			s.notTried("its acquire waits for the reply after its context has ended; go-redis ends the call only with " +
				"ContextTimeoutEnabled")
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

// unanswered lets an acquire time out while the servers are paused. It reports whether the lock was granted
// nevertheless.
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
	case err == nil: // the client ignored the deadline and got the reply
		s.release(lease)
	case !errors.Is(err, context.DeadlineExceeded):
		s.broken(ending, "an acquire that timed out returned %q", err)
	}
	return err == nil
}

// killable returns functions that kill a server and start it again, empty.
func (s *stage) killable() (kill, revive func(node int)) {
	if s.fixture.Kill == nil || s.fixture.Revive == nil {
		s.notTried("the fixture cannot kill and revive its servers")
	}
	dead := map[int]bool{}
	s.Cleanup(func() { // the next check has the same servers
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

// restartedServer kills the servers while a lock has a holder and waiters, and starts them again, empty. No waiter
// may wait forever, and the same Lockers must continue to work.
func restartedServer(s *stage) {
	kill, revive := s.killable()
	// The waiters are in other instances: those of the holder's instance may continue to wait, because the holder lives.
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
		if !w.within(s.patience) { // with an error, or with the lock: Redis has forgotten the holder
			s.fatalf("a waiter is still waiting for a lock that the restarted server does not have")
		}
	}
	_ = lease.Release(context.Background()) // not held, or a broken connection
	for _, i := range all {
		s.recovers(i)
		s.release(s.fill(i, "key")...)
	}
}

// forgotten clears the list of earlier connections, because the restarted servers have none of them.
func (s *stage) forgotten() {
	for _, o := range s.outside {
		clear(o.before)
	}
}

// recovers waits until each instance can acquire again; earlier connections may return errors
// first.
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
			s.fatalf("the servers run again, and an acquire still returns %q", last)
		}
	}
}

// deadNodes kills nodes of a quorum one after the other.
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

	last := nodes - minority - 1 // living nodes, less than a majority
	for node := minority; node < nodes-last; node++ {
		kill(node)
	}
	w := s.waiterFor(both[0], "key", both[0].Acquire)
	w.within(time.Second) // it may also give up
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
