package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// book records the holders of a lock while servers fail. It reports a failure if there are more holders than permits or
// if tokens do not increase.
type book struct {
	*stage

	mu      sync.Mutex
	holders map[strategies.Lease]time.Time // the end of each lease's validity
	token   int64                          // the largest token so far
	served  int                            // the number of leases granted so far
}

func (s *stage) book() *book {
	return &book{stage: s, holders: map[strategies.Lease]time.Time{}}
}

// enter records a lease that was requested at asked and granted for ttl. It reports a failure if more leases are valid
// than there are permits, or if the token is not larger than all earlier tokens.
func (b *book) enter(lease strategies.Lease, asked time.Time, ttl time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served++
	now := time.Now()
	until := validUntil(lease, asked, ttl)
	if !now.Before(until) { // the lease has already ended
		return
	}
	others := 0
	for _, end := range b.holders {
		if now.Before(end) {
			others++
		}
	}
	if others >= b.info.Capacity {
		b.errorf("the lock was granted while %d clients held it, although it has %d permits", others, b.info.Capacity)
	}
	b.holders[lease] = until
	if fenced, ok := strategies.As[strategies.Fenced](lease); ok && b.info.Claims.Fencing && b.info.Capacity == 1 {
		if token := fenced.FencingToken(); token <= b.token {
			b.errorf("token %d came after the larger or equal token %d", token, b.token)
		} else {
			b.token = token
		}
	}
}

// leave removes from the book a lease that is about to be released.
func (b *book) leave(lease strategies.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holders, lease)
}

// count returns the number of leases granted so far.
func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.served
}

// fill acquires all permits and records their leases.
func (b *book) fill(i *instance, ttl time.Duration) []strategies.Lease {
	asked := time.Now()
	leases := b.stage.fill(i, "key")
	for _, lease := range leases {
		b.enter(lease, asked, ttl)
	}
	return leases
}

// free releases the leases and retries after errors.
func (b *book) free(leases ...strategies.Lease) {
	for _, lease := range leases {
		b.leave(lease)
		_ = b.again(lease)
	}
}

// client acquires the lock in the background, with retries after errors, holds it for the given time and releases it.
func (b *book) client(i *instance, hold, ttl time.Duration) *waiter {
	return b.background(i, "key", func(ctx context.Context) error {
		for {
			asked := time.Now()
			lease, err := i.Acquire(ctx, "key")
			switch {
			case err == nil:
				b.enter(lease, asked, ttl)
				time.Sleep(hold)
				b.free(lease)
				return nil
			case ctx.Err() != nil, errors.Is(err, strategies.ErrClosed):
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// queue starts n clients, spread evenly over the instances, and returns when all of them wait.
func (b *book) queue(on []*instance, n int, hold, ttl time.Duration) []*waiter {
	var waiting []*waiter
	for c := range n {
		waiting = append(waiting, b.client(on[c%len(on)], hold, ttl))
	}
	for _, w := range waiting {
		w.settle()
	}
	return waiting
}

// all waits until each client has held the lock. It ends the check with a failure if this takes longer than the
// patience.
func (b *book) all(waiting []*waiter, after string) {
	stranded, end := 0, time.Now().Add(b.patience)
	for _, w := range waiting {
		if !w.within(time.Until(end)) {
			stranded++
		}
	}
	if stranded > 0 {
		b.fatalf("%v after %s, %d of %d clients have not got the lock", b.patience,
			after, stranded, len(waiting))
	}
}

// failover swaps the servers and their replicas while a lock is passed on: in the first round before the lock's
// release, in the second round during it. The replicas have all data. Unless the fixture closes the connections, all
// waiters are then still connected to the old primaries, which have become replicas.
func failover(s *stage) {
	if s.fixture.Failover == nil {
		s.notTried("the fixture's servers cannot fail over")
	}
	s.expiring = true
	const hold = 10 * time.Millisecond
	b, all := s.book(), s.several(4, s.lasting())
	swapped := false
	swap := func() {
		s.disturb("fail over", s.fixture.Failover)
		swapped = !swapped
	}
	defer func() {
		if swapped { // restore the original roles
			swap()
		}
	}()
	for _, during := range []bool{false, true} {
		leases := b.fill(all[0], s.lasting())
		waiting := b.queue(all[1:], 6, hold, s.lasting())
		if during {
			var releasing sync.WaitGroup
			releasing.Go(func() {
				time.Sleep(hold / 2)
				b.free(leases...)
			})
			swap()
			releasing.Wait()
		} else {
			swap()
			b.free(leases...)
		}
		b.all(waiting, "a failover")
	}
	s.moveTo(s.nodes, s.nodes) // the former replicas have connections that s.outside has not recorded
	s.recovers(all...)
}

// movingSlot moves the slot of a lock that has a holder and waiters, as happens when a cluster grows, and releases the
// lock during the move.
func movingSlot(s *stage) {
	cluster := s.cluster()
	b, all := s.book(), s.several(3, longTTL)
	leases := b.fill(all[0], longTTL)
	waiting := b.queue(all[1:], 4, time.Millisecond, longTTL)
	var finish func() error
	s.disturb("move a slot", func() (err error) { finish, err = cluster.Move("*" + s.id + "*"); return err })
	w := s.background(all[0], "key", func(context.Context) error { b.free(leases...); return nil })
	w.within(100 * time.Millisecond) // while the lock's keys are on two nodes, the release may have to wait
	s.disturb("finish a slot's move", finish)
	w.returned("a release during a slot's move")
	b.all(waiting, "a slot's move")
	s.moveTo(s.nodes, cluster.Primaries) // the primaries' connections to each other are no leftovers
	s.recovers(all...)
}

// dyingNode kills the cluster node that stores the lock. All waiters must get the lock within the lock's TTL plus the
// usual patience. The replica has all data, so no data is lost, but the connections of the lock's clients break.
func dyingNode(s *stage) {
	const ttl = 10 * time.Second
	cluster := s.cluster()
	if cluster.Die == nil {
		s.notTried("the fixture cannot kill a node of its cluster")
	}
	s.patience += ttl
	b, all := s.book(), s.several(3, ttl)
	var kill func() ([]goredis.Node, error)
	leases := b.fill(s.open(longTTL), longTTL)
	s.disturb("start a replica", func() (err error) { kill, err = cluster.Die("*" + s.id + "*"); return err })
	b.free(leases...)

	leases = b.fill(all[0], ttl)
	waiting := b.queue(all[1:], 4, time.Millisecond, ttl)
	var living []goredis.Node
	s.disturb("kill a node", func() (err error) { living, err = kill(); return err })
	promoted := time.Now()
	s.moveTo(s.nodes, living)
	w := s.background(all[0], "key", func(context.Context) error { b.free(leases...); return nil })
	b.all(waiting, "the promotion of a dead node's replica")
	first := slices.MinFunc(waiting, func(a, b *waiter) int { return a.over.Compare(b.over) })
	s.Logf("the first waiter got the lock %v after the promotion", first.over.Sub(promoted).Round(time.Millisecond))
	w.returned("a release after a node's death")
	s.moveTo(s.nodes, living)
	s.recovers(all...)
}

// cluster starts a cluster and makes the rest of the check use it. The check may leave keys with a TTL on the cluster.
func (s *stage) cluster() Cluster {
	if s.fixture.Cluster == nil {
		s.notTried("the fixture has no cluster")
	}
	s.expiring = true
	var cluster Cluster
	s.disturb("start a cluster", func() (err error) { cluster, err = s.fixture.Cluster(); return err })
	s.moveTo([]goredis.Node{cluster.Node}, cluster.Primaries)
	return cluster
}

// moveTo makes the rest of the check use other servers: new instances use the servers in nodes, and the suite inspects
// the servers in look.
func (s *stage) moveTo(nodes, look []goredis.Node) {
	s.nodes = nodes
	for _, o := range s.outside {
		_ = o.Close()
	}
	s.outside = nil
	for _, node := range look {
		s.look(node)
	}
}

// refusal is a server setting that makes the server refuse writes.
type refusal struct {
	setting, value string
	every          bool // the server refuses every write, not only those that need memory
}

// refusedWrites makes the servers refuse writes while a lock is passed on: first as if replicas were missing, then as
// if the memory were full.
func refusedWrites(s *stage) {
	s.expiring = true
	b, all := s.book(), s.several(3, s.lasting())
	s.release(s.acquire(all[0], "key"))
	for _, r := range []refusal{{"min-replicas-to-write", "9", true}, {"maxmemory", "1", false}} {
		s.refuse(b, all, r)
	}
	s.recovers(all...)
}

// refuse makes the servers refuse writes while the holder releases the lock, and then accept writes again. After that
// all waiters must get the lock.
func (s *stage) refuse(b *book, all []*instance, r refusal) {
	leases := b.fill(all[0], s.lasting())
	waiting := b.queue(all[1:], 4, time.Millisecond, s.lasting())
	relieve := s.set(r.setting, r.value)
	defer relieve()
	before := b.count()
	b.leave(leases[0])
	err := within(time.Second, leases[0].Release)
	time.Sleep(50 * time.Millisecond)
	if n := b.count() - before; n > 0 && r.every && err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		s.errorf("while the servers refused all writes, a release returned %q, and %d other clients were granted the "+
			"lock", err, n)
	}
	relieve()
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		b.free(leases[0])
	}
	b.free(leases[1:]...)
	b.all(waiting, "the servers accepted writes again")
}

// set changes a setting on all servers. undo restores the previous values.
func (s *stage) set(setting, value string) (undo func()) {
	type usual struct {
		redis.UniversalClient
		value string
	}
	var changed []usual
	undo = func() {
		for _, c := range changed {
			s.must("set "+setting+" back", c.ConfigSet(context.Background(), setting, c.value).Err())
		}
		changed = nil
	}
	for _, o := range s.outside {
		was, err := o.ConfigGet(context.Background(), setting).Result()
		if err == nil {
			err = o.ConfigSet(context.Background(), setting, value).Err()
		}
		if err != nil {
			undo()
			s.notTried("the servers' settings cannot be changed: %v", err)
		}
		changed = append(changed, usual{o.UniversalClient, was[setting]})
	}
	return undo
}

// clockStep is how far the checks change the servers' clocks. It is longer than any TTL.
const clockStep = time.Hour

// clockSetForward sets the servers' clocks forward while a client holds the lock. A lock whose leases end by Redis's
// clock must declare in its Limits that it fails this check.
func clockSetForward(s *stage) {
	set := s.settable()
	defer set(0)
	i, other := s.open(longTTL), s.open(longTTL)
	asked := time.Now()
	leases := s.fill(i, "key")
	set(clockStep)
	got := s.asks(other, "key", moment)
	if got != nil && time.Now().Before(validUntil(leases[0], asked, longTTL)) {
		s.errorf("the servers' clocks were set forward by %v, and a second client got the lock while the first holder's "+
			"lease was valid", clockStep)
	}
	for _, lease := range append(leases, got) {
		if lease != nil {
			_ = s.again(lease)
		}
	}
	if !s.eventually(func() bool { return s.free(other, "key") }) {
		s.broken(waking, "after the servers' clocks were set forward, a released lock is not free")
	}
}

// clockSetBack sets the servers' clocks back while a lock has a holder and waiters, and then releases the lock.
func clockSetBack(s *stage) {
	set := s.settable()
	defer set(0)
	b, all := s.book(), s.several(3, longTTL)
	for _, ahead := range []time.Duration{-clockStep, -2 * clockStep} {
		leases := b.fill(all[0], longTTL)
		waiting := b.queue(all[1:], 4, time.Millisecond, longTTL)
		set(ahead)
		b.free(leases...)
		b.all(waiting, "the servers' clocks were set back")
	}
}

// settable makes the rest of the check use servers whose clocks can be set. The returned function sets these clocks to
// the machine's time plus ahead, which may be negative.
func (s *stage) settable() (set func(ahead time.Duration)) {
	if s.fixture.Clock == nil {
		s.notTried("the fixture has no servers whose clock can be set")
	}
	var clock Clock
	s.disturb("start servers whose clock can be set", func() (err error) { clock, err = s.fixture.Clock(); return err })
	nodes := clock.Nodes()
	s.moveTo(nodes, nodes)
	return func(ahead time.Duration) {
		s.disturb("set the servers' clocks", func() error { return clock.Set(ahead) })
	}
}
