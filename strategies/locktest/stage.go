package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	// usualPatience is far more than a loaded machine needs and far less than longTTL.
	usualPatience = 20 * time.Second
	usualRounds   = 30
	// limitedPatience is the patience in checks that the lock fails according to its Info.
	limitedPatience = 4 * time.Second
	// longTTL is the TTL of leases that must not run out during a check. If one of them ran out, a waiter could get the
	// lock without a release.
	longTTL = 5 * time.Minute
	// shortTTL is the TTL of leases that are meant to run out.
	shortTTL = 300 * time.Millisecond
	// moment is how long a client waits for a lock that the check expects to be held.
	moment = 50 * time.Millisecond
)

// stage is the environment of one check: the fixture, the servers, the instances that the check has opened, and the
// report.
type stage struct {
	report
	ctx       context.Context
	check     Check
	fixture   Fixture
	info      strategies.Info
	patience  time.Duration
	rounds    int
	id        string          // part of all keys of the check
	prefix    string          // of all keys; contains the id
	verbatim  bool            // the id is only in the prefix, not in the keys themselves
	locks     map[string]bool // the names in Redis of all locks that the check has used
	nodes     []goredis.Node  // the servers of the check, at first the fixture's
	instances []*instance
	outside   []*outside // the suite's own clients, one per server
	connect   func(*redis.UniversalOptions) redis.UniversalClient
	expiring  bool // keys with a TTL may be left behind, because the check prevents clients from cleaning up

	slowest atomic.Int64 // the duration of the slowest try-lock during measure, in ns
}

// instance is one application instance: a Locker and its connections.
type instance struct {
	strategies.Locker                   // maps each key to a name that only this check uses
	lock              strategies.Locker // as the fixture's Open returned it
	probe             *strategies.Probe
	wire              *netfault.Path
	nodes             []redis.UniversalClient
}

func newStage(ctx context.Context, check Check, fixture Fixture, info strategies.Info) *stage {
	s := &stage{
		report: report{result: Result{Check: check.Name, Proves: check.Proves}},
		ctx:    ctx, check: check, fixture: fixture, info: info,
		patience: cmp.Or(fixture.Patience, usualPatience), rounds: cmp.Or(fixture.Rounds, usualRounds),
		id: fmt.Sprintf("%016x", rand.Uint64()), locks: map[string]bool{}, connect: dial,
	}
	s.prefix = "locktest-" + s.id + ":"
	if fixture.Patience == 0 && limit(check.Name, info) != "" {
		s.patience = limitedPatience
	}
	s.recordUseOfKey("key")
	return s
}

// play runs the check and then searches for keys, channels and connections that the check has left behind. A check that
// ends early also ends the goroutine that calls play, so the search does not take place.
func (s *stage) play() {
	s.alive()
	if s.info.OnRedis() {
		if s.fixture.Nodes == nil {
			s.notTried("the fixture has no servers")
		}
		// The fixture closes the clients that Nodes may open.
		if s.nodes = s.fixture.Nodes(); len(s.nodes) < s.info.Nodes {
			s.notTried("the fixture has %d servers, and the lock needs %d", len(s.nodes), s.info.Nodes)
		}
		for _, node := range s.nodes {
			s.look(node)
		}
	}
	// The check's goroutines inherit this label, by which nothingLeft finds them.
	pprof.SetGoroutineLabels(pprof.WithLabels(s.ctx, s.label()))
	defer pprof.SetGoroutineLabels(context.Background())
	s.check.run(s)
	s.nothingLeft()
}

// open opens another instance. If that fails, the check has no verdict, because a program that started too slowly or
// did not reach its server breaks no promise of the lock.
func (s *stage) open(ttl time.Duration) *instance {
	i := &instance{probe: &strategies.Probe{}, wire: &netfault.Path{}}
	config := goredis.Config{Prefix: s.prefix, TTL: ttl, Callers: 4, Probe: i.probe}
	if s.info.OnRedis() {
		for _, node := range s.nodes {
			options := through(i.wire, *node.Options)
			client := s.connect(options)
			s.Cleanup(func() { _ = client.Close() })
			i.nodes = append(i.nodes, client)
			config.Nodes = append(config.Nodes, goredis.Node{Client: client, Options: options})
		}
	}
	locker, err := s.fixture.Open(config)
	if err != nil && limit(s.check.Name, s.info) != "" { // the lock's Info declares that the lock fails this check
		s.alive()
		s.fatalf("open: %v", err)
	}
	s.must("open", err)
	i.lock, i.Locker = locker, s.naming(locker)
	s.instances = append(s.instances, i)
	s.Cleanup(func() {
		closed := make(chan struct{})
		go func() { _ = locker.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(teardown):
		}
	})
	if p, ok := strategies.As[strategies.Preparer](locker); ok {
		s.must("prepare", p.Prepare(s.ctx, []string{s.named("key")}))
	}
	return i
}

// through returns a copy of the options whose Dialer puts the connections on a path. The check can delay the traffic on
// this path.
func through(path *netfault.Path, o redis.UniversalOptions) *redis.UniversalOptions {
	o.Addrs = slices.Clip(o.Addrs) // go-redis appends discovered nodes; each client needs a list of its own
	dial := o.Dialer
	if dial == nil {
		simple := o.Simple()
		simple.DialTimeout = cmp.Or(simple.DialTimeout, 5*time.Second)
		dial = redis.NewDialer(simple)
	}
	o.Dialer = path.Through(dial)
	return &o
}

// dial returns a client with a service's usual settings, except that a cluster client reloads the slots each second.
// With go-redis's default of a minute, the client instead of the lock would determine the wait after a node's death.
func dial(o *redis.UniversalOptions) redis.UniversalClient {
	if !o.IsClusterMode {
		return redis.NewUniversalClient(o)
	}
	options := o.Cluster()
	options.ClusterStateReloadInterval = time.Second
	return redis.NewClusterClient(options)
}

// several opens n instances. If the lock allows fewer instances (Info.MaxInstances), several opens only that many, and
// repeats the first instance in the result.
func (s *stage) several(n int, ttl time.Duration) []*instance {
	var opened []*instance
	for range n {
		if most := s.info.MaxInstances; most > 0 && len(opened) >= most {
			opened = append(opened, opened[0])
			continue
		}
		opened = append(opened, s.open(ttl))
	}
	return opened
}

// acquire acquires a free lock. It ends the check if that fails or takes longer than the patience.
func (s *stage) acquire(i *instance, key string) strategies.Lease {
	w := s.waiterFor(i, key, i.Acquire)
	if !w.within(s.patience) {
		s.brokenNow(granting, "a free lock was not granted within %v", s.patience)
	}
	if w.err != nil {
		s.brokenNow(granting, "acquire: %v", w.err)
	}
	return w.lease
}

// fill acquires all permits of a free lock and returns their leases.
func (s *stage) fill(i *instance, key string) []strategies.Lease {
	return s.take(i, key, max(s.info.Capacity, 1))
}

// take acquires n permits of a lock and returns their leases. It ends the check if an acquire fails.
func (s *stage) take(i *instance, key string, n int) []strategies.Lease {
	var leases []strategies.Lease
	for range n {
		leases = append(leases, s.acquire(i, key))
	}
	return leases
}

// release releases the leases and ends the check with a failure on an error.
func (s *stage) release(leases ...strategies.Lease) {
	if fault := s.releaseAll(leases); fault != "" {
		s.fatalf("%s", fault)
	}
}

// held reports whether a new client finds all permits taken. Without a try-lock the client waits only a moment, so on a
// slow machine a free lock may seem held.
func (s *stage) held(i *instance, key string) bool {
	return !s.obtains(i, key, moment)
}

// free reports whether a new client gets a permit. Without a try-lock the client waits for s.patience.
func (s *stage) free(i *instance, key string) bool {
	return s.obtains(i, key, s.patience)
}

func (s *stage) obtains(i *instance, key string, wait time.Duration) bool {
	lease := s.asks(i, key, wait)
	if lease != nil {
		s.release(lease)
	}
	return lease != nil
}

// asks makes one try-lock and returns its lease. If the lock has no try-lock, asks makes an acquire that waits for at
// most the time wait. It returns nil if the client did not get the lock.
func (s *stage) asks(i *instance, key string, wait time.Duration) strategies.Lease {
	trier, ok := strategies.As[strategies.Trier](i.Locker)
	if !ok {
		w := s.waiterFor(i, key, i.Acquire)
		w.within(wait)
		w.end()
		return w.granted()
	}
	w := s.waiterFor(i, key, trier.TryAcquire)
	if !w.within(s.patience) {
		s.brokenNow(trying, "a try-lock has not returned after %v", s.patience)
	}
	s.slowest.Store(max(s.slowest.Load(), int64(time.Since(w.began))))
	return w.granted()
}

// full checks that no further permit is granted after the check has acquired all permits.
func (s *stage) full(i *instance, key string) {
	if !s.held(i, key) {
		s.brokenNow(exclusive, "the lock was granted although all its permits were taken")
	}
}

// eventually calls done, at growing intervals, until it returns true or the patience has passed. It returns the last
// result.
func (s *stage) eventually(done func() bool) bool {
	pause := time.Millisecond
	for end := time.Now().Add(s.patience); ; time.Sleep(pause) {
		s.alive()
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		pause = min(pause*3/2, 100*time.Millisecond)
	}
}

// ownConnections reports whether the instance uses connections that are not made from the Options in its Config.
func (s *stage) ownConnections(i *instance) bool {
	return s.info.OnRedis() && i.wire.LastWrite().IsZero()
}

// forget deletes the lock on key, and all keys that belong to the lock, from the servers.
func (s *stage) forget(key string) {
	for _, o := range s.outside {
		s.must("delete a lock", o.unlink(context.Background(), "*"+s.named(key)+"*"))
	}
}

// disturb calls one of the fixture's functions without the check's pprof label, because goroutines of that function are
// not leftovers of the lock.
func (s *stage) disturb(what string, do func() error) {
	defer pprof.SetGoroutineLabels(pprof.WithLabels(s.ctx, s.label()))
	pprof.SetGoroutineLabels(context.Background())
	s.must(what, do())
}

// teardown limits waits at the end of a check, such as for the Close of an instance or for the deletion of a failed
// check's keys.
const teardown = 5 * time.Second

// own wraps an instance's Locker for a check. It maps each key to a name that only this check uses. The Prefix does not
// suffice, because a lock may ignore it.
type own struct {
	strategies.Locker
	s *stage
}

// ownTrier is own with a try-lock.
type ownTrier struct {
	own
	trier strategies.Trier
}

func (s *stage) naming(locker strategies.Locker) strategies.Locker {
	if trier, ok := strategies.As[strategies.Trier](locker); ok {
		return ownTrier{own{locker, s}, trier}
	}
	return own{locker, s}
}

func (o own) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return keyed(o.Locker.Acquire(ctx, o.s.named(key)))
}

func (o ownTrier) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return keyed(o.trier.TryAcquire(ctx, o.s.named(key)))
}

// ownLease wraps a Lease whose type is not comparable, such as a struct with a slice, because checks use leases as map
// keys.
type ownLease struct{ strategies.Lease }

// Unwrap returns the lock's Lease.
func (l *ownLease) Unwrap() strategies.Lease { return l.Lease }

func keyed(lease strategies.Lease, err error) (strategies.Lease, error) {
	if lease != nil && !reflect.TypeOf(lease).Comparable() {
		lease = &ownLease{lease}
	}
	return lease, err
}

// named returns the name that a check uses in place of key. No other check uses this name. A verbatim check uses its
// keys unchanged.
func (s *stage) named(key string) string {
	if s.verbatim {
		return key
	}
	return key + "-" + s.id
}

// recordUseOfKey records that the check uses the lock on key. It records the lock's name with the Prefix and, for a
// lock that ignores the Prefix, the name without it.
func (s *stage) recordUseOfKey(key string) {
	s.locks[s.prefix+s.named(key)], s.locks[s.named(key)] = true, true
}

// unlink deletes the server's keys that match a pattern.
func (o *outside) unlink(ctx context.Context, pattern string) error {
	keys := o.Scan(ctx, 0, pattern, 1000).Iterator()
	for keys.Next(ctx) {
		if err := o.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}

// attempts is how often a check tries a step that a stalled machine can spoil, such as a step with a lease that must
// not run out.
const attempts = 6

// repeatIfDisturbed runs play with leases of the given TTL. play returns a fault, or "" for none. If the machine stood
// still for a fifth of the TTL during play, the standstill may have caused the fault, and repeatIfDisturbed runs play
// again with twice the TTL. If the last attempt is spoilt too, the check ends without a verdict.
func (s *stage) repeatIfDisturbed(ttl time.Duration, play func(ttl time.Duration) (fault string)) {
	fault, spoilt := pause.Calmly(attempts, ttl, s.measure, play)
	for _, once := range spoilt {
		s.Logf("%s", once)
	}
	switch {
	case fault != "":
		s.fatalf("%s", fault)
	case len(spoilt) == attempts:
		s.notJudged("%s", spoilt[attempts-1])
	}
}

// awake is like repeatIfDisturbed, for steps that pass only if no watchdog renews a lease. It also repeats play after a
// standstill in which a lease would have run out even with a running watchdog, because such a run of play proves
// nothing.
func (s *stage) awake(ttl time.Duration, play func(ttl time.Duration)) {
	s.repeatIfDisturbed(ttl, func(ttl time.Duration) (fault string) {
		if longest := s.measure(func() { play(ttl) }); s.info.Claims.Watchdog && longest >= ttl/3 {
			return "the machine stood still for so long that even a running watchdog might have lost the lease"
		}
		return ""
	})
}

// measure runs do. It returns the longest standstill of this process or of a server in that time, or the duration of
// the slowest try-lock if that is longer.
func (s *stage) measure(do func()) (longest time.Duration) {
	before := s.slowest.Swap(0)
	ended, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ended:
				return
			}
			for _, o := range s.outside {
				_ = o.Ping(context.Background()).Err()
			}
			longest = max(longest, time.Since(last))
		}
	}()
	func() {
		defer func() { close(ended); <-looked }() // do may end the goroutine
		do()
	}()
	longest = max(longest, time.Duration(s.slowest.Load()))
	s.slowest.Store(max(before, int64(longest)))
	return longest
}

// releaseAll releases the leases and returns the first error as a fault, or "".
func (s *stage) releaseAll(leases []strategies.Lease) (fault string) {
	for _, lease := range leases {
		if err := s.returns(lease.Release); err != nil && fault == "" {
			fault = fmt.Sprintf("release: %v", err)
		}
	}
	return fault
}

var errDeaf = errors.New("the call has not returned although its context has ended")

// returns makes a call with a context that ends after the patience. It returns errDeaf if the call ignores the end of
// the context.
func (s *stage) returns(call func(context.Context) error) error {
	result := make(chan error, 1)
	go func() { result <- within(s.patience, call) }()
	select {
	case err := <-result:
		return err
	case <-time.After(s.patience + teardown):
		return errDeaf
	}
}

// within makes a call with a context that ends after the limit.
func within(limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return call(ctx)
}
