package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/goetcd"
)

func TestMain(m *testing.M) {
	drive.ManyAtATime()
	goleak.VerifyTestMain(m)
}

const ttl = 60 * time.Second

// open opens a Locker on a client of its own.
func open(t testing.TB, server *etcdtest.Etcd, options etcd.Options, ttl time.Duration) (*etcd.Locker, *clientv3.Client) {
	t.Helper()
	client := server.Client(t)
	locker, err := etcd.Open(goetcd.Config{Nodes: []goetcd.Node{{Client: client}}, Prefix: "trial:", TTL: ttl}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	return locker, client
}

func acquire(t testing.TB, locker *etcd.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	lease, err := locker.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t testing.TB, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

// keys are all that etcd has, in the order in which they were made.
func keys(t testing.TB, client *clientv3.Client) []string {
	t.Helper()
	answer, err := client.Get(t.Context(), "trial:", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kv := range answer.Kvs {
		names = append(names, string(kv.Key))
	}
	return names
}

// leases are the sessions that etcd knows.
func leases(t testing.TB, client *clientv3.Client) []clientv3.LeaseStatus {
	t.Helper()
	answer, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return answer.Leases
}

// waits acquires in the background, and returns once the waiter stands in the queue.
func waits(t testing.TB, ctx context.Context, locker *etcd.Locker, outside *clientv3.Client, key string) <-chan granted {
	t.Helper()
	before := len(keys(t, outside))
	got := make(chan granted, 1)
	ctx, cancel := context.WithTimeout(ctx, 2*drive.Bound) // a waiter that is forgotten says so
	go func() {
		defer cancel()
		lease, err := locker.Acquire(ctx, key)
		got <- granted{lease, err}
	}()
	poll.Until(t, "the waiter stands in the queue", func() bool { return len(keys(t, outside)) > before })
	return got
}

type granted struct {
	strategies.Lease
	err error
}

func (g granted) held(t testing.TB) strategies.Lease {
	t.Helper()
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g.Lease
}

// each runs a test with each of the variants.
func each(t *testing.T, test func(t *testing.T, options etcd.Options)) {
	for name, options := range variants() {
		t.Run(name, func(t *testing.T) { test(t, options) })
	}
}

func TestTheTokenIsTheRevisionOfTheKey(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		locker, client := open(t, server, options, ttl)
		waiter, _ := open(t, server, options, ttl)
		first := acquire(t, locker, "key")
		next := waits(t, t.Context(), waiter, client, "key")
		for range 3 { // so that later revisions are others
			if _, err := client.Put(t.Context(), "noise", ""); err != nil {
				t.Fatal(err)
			}
		}
		release(t, first)
		second := (<-next).held(t)
		created, err := client.Get(t.Context(), "trial:key/", clientv3.WithPrefix())
		if err != nil || len(created.Kvs) != 1 || created.Kvs[0].CreateRevision != token(second) {
			t.Errorf("the token is %d, and the keys are %v (%v)", token(second), created.Kvs, err)
		}
		if token(first) >= token(second) {
			t.Errorf("token %d came after %d", token(second), token(first))
		}
		release(t, second)
	})
}

// Each waiter comes when the one before stands in the queue.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		holder, client := open(t, server, options, ttl)
		lease := acquire(t, holder, "key")
		var waiting []<-chan granted
		for range 6 {
			locker, _ := open(t, server, options, ttl)
			waiting = append(waiting, waits(t, t.Context(), locker, client, "key"))
		}
		for n, next := range waiting {
			release(t, lease)
			lease = (<-next).held(t)
			for _, later := range waiting[n+1:] {
				select {
				case <-later:
					t.Fatalf("somebody was served with number %d", n)
				default:
				}
			}
		}
		release(t, lease)
	})
}

// Names that one would be the folder of the other are two locks.
func TestNamesWithSlashes(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		locker, _ := open(t, server, options, ttl)
		for _, name := range []string{"a/b/c", "a/b", "a%2Fb", "a/", "a"} {
			lease, err := locker.TryAcquire(t.Context(), name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer func() { release(t, lease) }()
		}
	})
}

// A release just before a waiter's watch begins reaches it.
func TestAReleaseBeforeTheWatch(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		holder, _ := open(t, server, options, ttl)
		lease := acquire(t, holder, "key")
		var once sync.Once
		config := server.Config()
		config.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, begin grpc.Streamer, more ...grpc.CallOption) (grpc.ClientStream, error) {
			if strings.HasSuffix(method, "/Watch") {
				once.Do(func() { release(t, lease) })
			}
			return begin(ctx, d, conn, method, more...)
		})}
		client, err := clientv3.New(config)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		waiter, err := etcd.Open(goetcd.Config{Nodes: []goetcd.Node{{Client: client}}, Prefix: "trial:", TTL: ttl}, options)
		if err != nil {
			t.Fatal(err)
		}
		defer waiter.Close()
		release(t, acquire(t, waiter, "key"))
		once.Do(func() { t.Error("nobody watched") })
	})
}

// A holder whose lease etcd has ended is told so, and harms nobody.
func TestTheSessionEnds(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		holder, client := open(t, server, options, 2*time.Second)
		other, _ := open(t, server, options, ttl)
		lease := acquire(t, holder, "key")
		next := waits(t, t.Context(), other, client, "key")
		revoke(t, client, keys(t, client)[0])
		second := (<-next).held(t)
		if token(second) <= token(lease) {
			t.Errorf("token %d came after %d", token(second), token(lease))
		}
		select {
		case <-lease.(strategies.Watched).Lost():
		case <-time.After(drive.Bound):
			t.Error("its loss was not told")
		}
		if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("a release of a lost lock returned %v", err)
		}
		if _, err := holder.TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
			t.Errorf("a late release freed the next holder's lock: %v", err)
		}
		release(t, second)
		release(t, acquire(t, holder, "key")) // with another session
	})
}

// revoke ends the session of a key.
func revoke(t testing.TB, client *clientv3.Client, key string) {
	t.Helper()
	var id int64
	if _, err := fmt.Sscanf(key[strings.LastIndex(key, "/")+1:], "%x", &id); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(id)); err != nil {
		t.Fatal(err)
	}
}

// A waiter whose session ends queues up again.
func TestAWaitersSessionEnds(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		holder, client := open(t, server, options, ttl)
		other, _ := open(t, server, options, 2*time.Second)
		lease := acquire(t, holder, "key")
		next := waits(t, t.Context(), other, client, "key")
		old := keys(t, client)[1]
		revoke(t, client, old)
		poll.Until(t, "it queues up again", func() bool { now := keys(t, client); return len(now) == 2 && now[1] != old })
		release(t, lease)
		release(t, (<-next).held(t))
	})
}

// Waits are given up at any moment around a release: afterwards etcd has no key, and after
// Close no lease.
func TestCancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		holder, client := open(t, server, options, ttl)
		other, _ := open(t, server, options, ttl)
		rounds := 30
		if extent.Thorough() {
			rounds = 150
		}
		for round := range rounds {
			lease := acquire(t, holder, "key")
			ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					lease, err := other.Acquire(ctx, "key")
					if err == nil {
						err = lease.Release(t.Context())
					} else if errors.Is(err, context.Canceled) {
						err = nil
					}
					if err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			time.Sleep(time.Duration(rand.Int64N(int64(8 * time.Millisecond))))
			all.Go(func() { time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond)))); cancel() })
			release(t, lease)
			all.Wait()
			if left := keys(t, client); len(left) > 0 {
				t.Fatalf("round %d: left: %q", round, left)
			}
			cancel()
		}
		for _, locker := range []*etcd.Locker{holder, other} {
			if err := locker.Close(); err != nil {
				t.Error(err)
			}
		}
		if left := leases(t, client); len(left) > 0 {
			t.Errorf("%d sessions are left", len(left))
		}
	})
}

// A call whose time is over returns though etcd does not answer, waiting in the queue, on its
// way into it, or making a session.
func TestEtcdHangs(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		locker, client := open(t, server, options, ttl)
		lease := acquire(t, locker, "key")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := waits(t, ctx, locker, client, "key")
		server.Pause(0)
		cancel()
		if got := <-waiting; !errors.Is(got.err, context.Canceled) {
			t.Errorf("a wait that was given up returned %v", got.err)
		}
		for range 2 {
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, err := locker.Acquire(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an acquire returned %v", err)
			}
			cancel()
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := lease.Release(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a release returned %v", err)
		}
		cancel()
		server.Resume(0)
		release(t, acquire(t, locker, "key")) // the unanswered release ended its session
		poll.Until(t, "no key is left", func() bool { return len(keys(t, client)) == 0 })
	})
}

// The lease has the TTL in whole seconds, rounded up.
func TestTTL(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	for asked, want := range map[time.Duration]int64{2500 * time.Millisecond: 3, 7 * time.Second: 7} {
		locker, client := open(t, server, etcd.Defaults(), asked)
		lease := acquire(t, locker, "key")
		told, err := client.TimeToLive(t.Context(), leases(t, client)[0].ID)
		if err != nil || told.GrantedTTL != want {
			t.Errorf("with %v a lease lasts for %d s (%v)", asked, told.GrantedTTL, err)
		}
		release(t, lease)
		_ = locker.Close()
	}
}

// Sessions are kept for the next acquisition, or not.
func TestSessionsAreKept(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	for sessions, want := range map[etcd.Sessions]int{etcd.Pooled: 1, etcd.Fresh: 0} {
		locker, client := open(t, server, etcd.Options{Watch: etcd.ByMutex, Sessions: sessions}, ttl)
		for range 10 {
			release(t, acquire(t, locker, "key"))
		}
		if got := len(leases(t, client)); got != want {
			t.Errorf("%s: %d sessions are left, want %d", sessions, got, want)
		}
		_ = locker.Close()
	}
}

// Waiters of both kinds exclude each other.
func TestBothKindsShareALock(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	const each = 10
	var inside, served atomic.Int64
	var all sync.WaitGroup
	for _, options := range variants() {
		locker, _ := open(t, server, options, ttl)
		for range 3 {
			all.Go(func() {
				for range each {
					ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
					lease, err := locker.Acquire(ctx, "key")
					cancel()
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two hold the lock")
					}
					served.Add(1)
					inside.Add(-1)
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if served.Load() != int64(len(variants())*3*each) {
		t.Errorf("%d were served", served.Load())
	}
}

func TestUnknownOptions(t *testing.T) {
	for _, options := range []etcd.Options{{}, {Watch: "other", Sessions: etcd.Fresh}, {Watch: etcd.ByNext, Sessions: "other"}} {
		if _, err := etcd.Open(goetcd.Config{Nodes: []goetcd.Node{{}}, TTL: ttl}, options); err == nil {
			t.Errorf("%+v was taken", options)
		}
	}
}
