package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// outside is a client with which the suite itself inspects and disturbs a server.
type outside struct {
	redis.UniversalClient
	before map[string]bool // ids of the connections that existed before the check
}

// outsideName is the CLIENT name of the suite's own connections, which are not leftovers of a lock.
const outsideName = "locktest-outside"

// sentinelName is the prefix of the CLIENT names of Redis Sentinel's connections, which are not leftovers of a lock.
const sentinelName = "sentinel-"

func (s *stage) look(node goredis.Node) {
	given := node.Options
	if given == nil {
		s.notJudged("a Node of the fixture has no Options")
	}
	options := *given
	options.ClientName, options.MaxRetries = outsideName, 3
	client := redis.NewUniversalClient(&options)
	o := &outside{UniversalClient: client, before: map[string]bool{}}
	s.Cleanup(func() {
		if !s.passed() {
			ctx, cancel := context.WithTimeout(context.Background(), teardown)
			defer cancel()
			_ = o.unlink(ctx, "*"+s.id+"*") // the server may be dead
		}
		_ = client.Close()
	})
	for _, c := range s.connections(o) {
		o.before[c["id"]] = true
	}
	s.outside = append(s.outside, o)
}

// connections returns the fields of CLIENT LIST, one map per connection.
func (s *stage) connections(o *outside) []map[string]string {
	list, err := o.ClientList(context.Background()).Result()
	s.must("list the connections", err)
	return slices.Collect(replies.Clients(list))
}

// nothingLeft closes the instances. It checks that no channel, connection or goroutine is left, and no key except those
// that the lock's Info declares.
func (s *stage) nothingLeft() {
	for _, i := range s.instances {
		err := s.returns(func(context.Context) error { return i.Close() })
		if errors.Is(err, errDeaf) {
			s.brokenNow(tidy, "Close has not returned within %v", s.patience)
		}
		if err != nil {
			s.broken(tidy, "close: %v", err)
		}
	}
	s.gone("keys and channels", func() []string { return s.leftovers() })
	for _, i := range s.instances {
		for _, client := range i.nodes {
			_ = client.Close()
		}
	}
	s.gone("connections", s.unownedConnections)
	pprof.SetGoroutineLabels(context.Background()) // this goroutine is not a leftover
	s.gone("goroutines", s.goroutines)
}

// gone waits until left returns nothing, and reports a failure if this takes longer than the patience.
func (s *stage) gone(what string, left func() []string) {
	var last []string
	if !s.eventually(func() bool { last = left(); return len(last) == 0 }) {
		s.broken(tidy, "%s are left: %q", what, last)
	}
}

// leftovers returns the check's keys and channels on all servers, except keys that may stay.
func (s *stage) leftovers() []string {
	ctx := context.Background()
	var left []string
	for _, o := range s.outside {
		keys := o.Scan(ctx, 0, "*"+s.id+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if s.declared(keys.Val()) || s.expiring && o.PTTL(ctx, keys.Val()).Val() != -1 {
				continue
			}
			left = append(left, keys.Val())
		}
		s.must("search for keys", keys.Err())
		for _, list := range []func(context.Context, string) *redis.StringSliceCmd{
			o.PubSubChannels,
			o.PubSubShardChannels,
		} {
			channels, err := list(ctx, "*"+s.id+"*").Result()
			if _, unknown := errors.AsType[redis.Error](err); unknown { // before Redis 7
				continue
			}
			s.must("search for channels", err)
			left = append(left, channels...)
		}
	}
	return left
}

// declared reports whether a key matches one of the patterns in Info.Persistent. {key} must match the whole name of a
// lock that the check has used, with or without braces. Otherwise the pattern {key} of a semaphore would match every
// key.
func (s *stage) declared(key string) bool {
	return slices.ContainsFunc(s.info.Persistent, func(pattern string) bool {
		before, after, ofLock := strings.Cut(pattern, "{key}")
		if !ofLock {
			return key == pattern
		}
		rest, begins := strings.CutPrefix(key, before)
		lock, ends := strings.CutSuffix(rest, after)
		bare, opened := strings.CutPrefix(lock, "{")
		bare, closed := strings.CutSuffix(bare, "}")
		return begins && ends && (s.locks[lock] || opened && closed && s.locks[bare])
	})
}

// unownedConnections returns the connections that were opened during the check, minus as many as there are in the pools
// of Fixture.Clients.
func (s *stage) unownedConnections() []string {
	left := s.newConnections()
	for _, client := range s.fixture.Clients {
		left = left[min(len(left), int(client.PoolStats().TotalConns)):]
	}
	return left
}

func (s *stage) newConnections() []string {
	var left []string
	for _, o := range s.outside {
		for _, c := range s.connections(o) {
			if !o.before[c["id"]] && c["name"] != outsideName && !strings.HasPrefix(c["name"], sentinelName) {
				left = append(left, fmt.Sprintf("%s, last command %s", c["addr"], c["cmd"]))
			}
		}
	}
	return left
}

func (s *stage) label() pprof.LabelSet { return pprof.Labels("locktest", s.prefix) }

// goroutines returns the call stack of each goroutine that carries the check's label, on one line.
func (s *stage) goroutines() []string {
	var profile bytes.Buffer
	s.must("list the goroutines", pprof.Lookup("goroutine").WriteTo(&profile, 1))
	var left []string
	for record := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(record, s.prefix) {
			continue
		}
		var calls []string
		for line := range strings.Lines(record) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" &&
				strings.HasPrefix(fields[1], "0x") {
				calls = append(calls, fields[2])
			}
		}
		left = append(left, strings.Join(calls, " < "))
	}
	return left
}

// idleLocks is the number of locks that a check uses and then leaves idle.
const idleLocks = 60

// atOnce is the number of locks that have a waiter at the same time.
const atOnce = 10

// used acquires each of idleLocks locks once and passes it on to a waiter, atOnce locks at a time.
func (s *stage) used(from, to *instance) {
	for first := 0; first < idleLocks; first += atOnce {
		s.pass(from, to, first, atOnce, func() {})
	}
}

// pass acquires n locks in one instance, starts a waiter for each lock in another instance, calls the given function,
// and then passes the locks on to the waiters.
func (s *stage) pass(from, to *instance, first, n int, meanwhile func()) {
	var leases []strategies.Lease
	var waiting []*waiter
	for k := first; k < first+n; k++ {
		leases = append(leases, s.fill(from, fmt.Sprint("idle ", k))...)
	}
	for k := first; k < first+n; k++ {
		waiting = append(waiting, s.waiter(to, fmt.Sprint("idle ", k)))
	}
	waiting[n-1].parked()
	meanwhile()
	s.release(leases...)
	for _, w := range waiting {
		w.finish()
	}
}

// idleKeys counts the keys and channels that idle locks leave while the instances live. The limit is half the number of
// locks, because all locks may share some keys and channels.
func idleKeys(s *stage) {
	both := s.several(2, longTTL)
	s.used(both[0], both[1])
	var left []string
	if !s.eventually(func() bool { left = s.leftovers(); return len(left) < idleLocks/2 }) {
		s.fatalf("%d idle locks left behind %d keys and channels, such as %q", idleLocks,
			len(left), left[0])
	}
}

// connections counts an instance's open connections outside its clients' pools when all locks are idle, and again while
// some locks have a waiter.
func connections(s *stage) {
	both := s.several(2, longTTL)
	s.used(both[0], both[1])
	for _, i := range both {
		s.opens(i, 0)
	}
	s.pass(both[0], both[1], 0, atOnce, func() {
		for range 20 { // some waiters may not have dialled yet
			s.opens(both[1], atOnce)
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// opens compares an instance's open connections with the number that its Info allows. The allowance always includes
// atOnce waiters, because an instance may keep a waiter's connection for the next waiter.
func (s *stage) opens(i *instance, waiters int) {
	declared := s.info.Connections.PerInstance*max(1, len(i.nodes)) + s.info.Connections.PerWaiter*atOnce
	var open int
	if !s.eventually(func() bool { open = i.connectionsOutsidePool(); return open <= declared }) {
		s.fatalf("an instance that has used %d locks, of which %d have a waiter, has %d connections outside its pool; its "+
			"Info allows %d",
			idleLocks, waiters, open, declared)
	}
}

// connectionsOutsidePool returns the number of open connections that are not in the clients' pools.
func (i *instance) connectionsOutsidePool() int {
	pooled := 0
	for _, client := range i.nodes {
		pooled += int(client.PoolStats().TotalConns)
	}
	return i.wire.Connections() - pooled
}
