package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// silentTTL is the TTL of leases whose waiters receive no message about the release.
const silentTTL = 2 * time.Second

// markTTL is the TTL of the suite's own keys. They have a TTL in case a failover prevents their deletion.
const markTTL = time.Minute

// silentSubscription silences the connections on which an instance waits for messages, once during a wait and once
// before it, and then releases the lock. At the end it cancels a waiter whose connections are silent.
func silentSubscription(s *stage) {
	s.expiring = true // a wake-up that Redis sends to a silent connection is lost; its keys may stay until their TTL
	both := s.several(2, silentTTL)
	var silent netfault.Packets
	for _, during := range []bool{true, false} {
		tries := 1
		for !s.silenced(both, during, &silent) {
			if tries++; tries > mostTries {
				s.notJudged("the machine is too busy: in no attempt did a waiter wait until a lease of %v was released", silentTTL)
			}
		}
	}
	lasting := s.several(2, longTTL)
	s.passOn(s.fill(lasting[0], "key"), lasting[1], "key", func() {})
	leases := s.fill(lasting[0], "key")
	w := s.waiter(lasting[1], "key")
	w.parked()
	silent = append(silent, lasting[1].wire.Silence()...)
	w.end()
	s.release(leases...)
	s.must("close the silent connections", silent.Deliver())
}

// mostTries is how often the check tries a step that fails if the machine is busy.
const mostTries = 5

// silenced lets a waiter of the second instance wait on connections that fall silent during its wait or before it, and
// then releases the lock in the first instance. It returns false if the lease ran out before the release. The waiter
// has then missed no message, so the try shows nothing.
func (s *stage) silenced(both []*instance, during bool, silent *netfault.Packets) bool {
	s.passOnce(both)
	when := "before"
	if !during {
		*silent = append(*silent, both[1].wire.Silence()...)
	}
	began := time.Now()
	leases := s.fill(both[0], "key")
	w := s.waiter(both[1], "key")
	if during {
		when = "while"
		w.parkedBefore(began.Add(silentTTL))
		// A client that waited earlier subscribes again for this wait; on a busy machine it may do so only after
		// parkedBefore.
		for end := time.Now().Add(s.patience); !w.isOver() && time.Now().Before(end); time.Sleep(time.Millisecond) {
			now := both[1].wire.Silence()
			*silent = append(*silent, now...)
			if len(now) > 0 || !both[1].wire.Waited() {
				break
			}
		}
	} else {
		w.within(moment)
	}
	early := w.isOver()
	for _, lease := range leases {
		early = s.again(lease) != nil || early // on a slow machine the lease may have run out
	}
	if limit := silentTTL + s.patience/2; !w.within(limit) {
		s.fatalf("the connections of a waiter fell silent %s it waited; %v after the release the waiter has not got the "+
			"lock, although the lease's TTL is %v", when, limit, silentTTL)
	}
	w.finish()
	return !early
}

// passOnce passes the lock to a waiter of the second instance, so that this instance opens its connections. If an
// earlier try has silenced the connections of the second instance, passOnce takes up to one TTL, and the leases may
// have run out by then.
func (s *stage) passOnce(both []*instance) {
	began := time.Now()
	leases := s.fill(both[0], "key")
	w := s.waiter(both[1], "key")
	w.parkedBefore(began.Add(silentTTL))
	for i, lease := range leases {
		if err := s.again(lease); err != nil && time.Since(began) < silentTTL {
			s.fatalf("release: %v", err)
		}
		if i == 0 {
			w.finish()
		}
	}
}

// sentinel makes Sentinel fail over while a lock has a holder and waiters. It releases the lock when the instances'
// clients have moved to the new primary. The old primary continues as a master. A client that stays connected to it
// gets the lock there, or waits until the TTL ends.
func sentinel(s *stage) {
	if s.info.Nodes > 1 {
		s.notApplicable("it is a quorum of several nodes, none of which fails over")
	}
	if s.fixture.Sentinel == nil {
		s.notTried("the fixture has no servers that Sentinel watches")
	}
	s.expiring = true
	var on Sentinel
	s.disturb("start Sentinel", func() (err error) { on, err = s.fixture.Sentinel(); return err })
	s.moveTo([]goredis.Node{on.Node}, []goredis.Node{on.Old, on.New})
	universal := s.open(longTTL)
	s.connect = func(o *redis.UniversalOptions) redis.UniversalClient { return redis.NewFailoverClient(o.Failover()) }
	failover := s.open(longTTL)
	all := []*instance{universal, failover, universal}

	for turn, from := range all[:2] { // this opens their connections
		s.passOn(s.fill(from, "key"), all[turn+1], "key", func() {})
	}
	b := s.book()
	leases := b.fill(universal, longTTL)
	waiting := b.queue(all[:2], 2, 0, longTTL)
	if !s.replicated(s.outside[0], s.outside[1]) {
		s.notJudged("the replica has not received all data of the primary in time")
	}
	s.disturb("make Sentinel fail over", on.Failover)
	for _, i := range all[:2] {
		if !s.eventually(func() bool { return s.isAt(i, s.outside[1]) }) {
			s.notJudged("an instance's client has not moved to the new primary in time")
		}
	}
	released := time.Now()
	b.free(leases...)
	b.all(waiting, "a release on the new primary")
	s.Logf("all waiters had held the lock %v after the release", time.Since(released).Round(time.Millisecond))
	for turn, from := range all[:2] {
		leases := s.fill(from, "later")
		s.full(all[turn+1], "later")
		if left := s.keys(s.outside[0], "later"); len(left) > 0 {
			s.fatalf("after Sentinel's failover a new lock has keys on the old primary: %q", left)
		}
		s.passOn(leases, all[turn+1], "later", func() {})
	}
	s.forget("key") // the old primary still has the key
}

// keys returns the keys on a server that belong to the check's lock on key.
func (s *stage) keys(o *outside, key string) []string {
	keys, err := o.Keys(context.Background(), "*"+s.named(key)+"*").Result()
	s.must("search for keys", err)
	return keys
}

// isAt reports whether an instance's client is connected to the server. It writes a key with the client and reads it on
// the server.
func (s *stage) isAt(i *instance, o *outside) bool {
	ctx := context.Background()
	key := s.prefix + "at"
	mark := fmt.Sprint(time.Now().UnixNano())
	if i.nodes[0].Set(ctx, key, mark, markTTL).Err() != nil {
		return false
	}
	return o.Get(ctx, key).Val() == mark
}

// replicated waits until a replica has all data that its primary has now, and reports whether this takes at most the
// patience. It writes a key on the primary and waits for that key, because replication keeps the order of commands.
func (s *stage) replicated(primary, replica *outside) bool {
	ctx := context.Background()
	key, mark := s.prefix+"mark", fmt.Sprint(time.Now().UnixNano())
	s.must("write a mark on the primary", primary.Set(ctx, key, mark, markTTL).Err())
	defer primary.Del(ctx, key)
	return s.eventually(func() bool { return replica.Get(ctx, key).Val() == mark })
}
