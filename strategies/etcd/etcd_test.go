package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/internal/store"
	etcdstore "github.com/lockbench/lockbench/internal/store/etcd"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
)

func TestMain(m *testing.M) {
	poll.ManyAtATime()
	goleak.VerifyTestMain(m)
}

const ttl = 60 * time.Second

// each runs the test with each value of the option watch.
func each(t *testing.T, test func(t *testing.T, options etcd.Options)) {
	for _, watch := range []etcd.Watch{etcd.ByMutex, etcd.ByNext} {
		t.Run(string(watch), func(t *testing.T) { test(t, etcd.Options{Watch: watch}) })
	}
}

// start starts an etcd server, which is stopped when the test ends.
func start(t testing.TB) *etcdstore.Server {
	return drive.Open(t, etcdstore.Store(), store.Options{}).(*etcdstore.Server)
}

func config(server *etcdstore.Server) clientv3.Config {
	return clientv3.Config{
		Endpoints: []string{server.Describe().Address}, Logger: zap.NewNop(), MaxUnaryRetries: 1,
		DialTimeout: 5 * time.Second,
	}
}

func client(t testing.TB, server *etcdstore.Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(config(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func do(t testing.TB, what func(context.Context) error) {
	t.Helper()
	if err := what(context.Background()); err != nil {
		t.Error(err)
	}
}

// open opens a Locker with the prefix "trial:". The cleanup of the test closes it.
func open(t testing.TB, client *clientv3.Client, options etcd.Options, ttl time.Duration) *etcd.Locker {
	t.Helper()
	locker, err := etcd.Open(etcd.Config{Nodes: []*clientv3.Client{client}, Prefix: "trial:", TTL: ttl}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	return locker
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

// keys returns the etcd keys of all clients that hold a lock or wait for one, in the order of their creation.
func keys(t testing.TB, client *clientv3.Client) (names []string) {
	t.Helper()
	byAge := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
	answer, err := client.Get(t.Context(), "trial:", clientv3.WithPrefix(), byAge)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		names = append(names, string(kv.Key))
	}
	return names
}

// granted is the result of an Acquire in the background.
type granted struct {
	lease strategies.Lease
	err   error
}

// waits requests the lock "key" in the background, and returns once the waiter is in the queue. The returned channel
// receives the result.
func waits(ctx context.Context, t testing.TB, locker *etcd.Locker, outside *clientv3.Client) <-chan granted {
	t.Helper()
	before := len(keys(t, outside))
	got := make(chan granted, 1)
	ctx, cancel := context.WithTimeout(ctx, 2*drive.Bound) // ends a waiter that never gets the lock
	go func() {
		defer cancel()
		lease, err := locker.Acquire(ctx, "key")
		got <- granted{lease, err}
	}()
	poll.Until(t, "the waiter is in the queue", func() bool { return len(keys(t, outside)) > before })
	return got
}

func served(t testing.TB, waiter <-chan granted) strategies.Lease {
	t.Helper()
	got := <-waiter
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lease
}

// A waiter's fencing token must be the create revision of its key, even if other keys are written while it waits. The
// names of locks must be escaped in keys: "a", "a/" and "a/b" must be separate locks.
func TestTokensAndNames(t *testing.T) {
	t.Parallel()
	client := client(t, start(t))
	each(t, func(t *testing.T, options etcd.Options) {
		locker, waiter := open(t, client, options, ttl), open(t, client, options, ttl)
		first := acquire(t, locker, "key")
		next := waits(t.Context(), t, waiter, client)
		for range 5 {
			if _, err := client.Put(t.Context(), "noise", ""); err != nil {
				t.Fatal(err)
			}
		}
		release(t, first)
		second := served(t, next)
		created, err := client.Get(t.Context(), "trial:key/", clientv3.WithPrefix())
		if err != nil || len(created.Kvs) != 1 || created.Kvs[0].CreateRevision != token(second) ||
			token(first) >= token(second) {
			t.Errorf("token %d after %d, and the keys are %v (%v)", token(second), token(first), created.Kvs, err)
		}
		release(t, second)
		for _, name := range []string{"a/b/c", "a/b", "a%2Fb", "a/", "a"} {
			lease, err := locker.TryAcquire(t.Context(), name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer release(t, lease)
		}
	})
}

// The lock is released after a waiter has read the queue and before its watch begins. The waiter must not miss the
// release.
func TestReleaseBeforeWatch(t *testing.T) {
	t.Parallel()
	server := start(t)
	each(t, func(t *testing.T, options etcd.Options) {
		lease := acquire(t, open(t, client(t, server), options, ttl), "key")
		var once sync.Once
		config := config(server)
		config.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(func(
			ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			begin grpc.Streamer, more ...grpc.CallOption,
		) (grpc.ClientStream, error) {
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
		waiter := open(t, client, options, ttl)
		release(t, acquire(t, waiter, "key"))
		once.Do(func() { t.Error("no client watched") })
		_ = waiter.Close()
	})
}

// A waiter whose session is revoked must join the queue again. A holder whose session is revoked must find Lost closed,
// and its Release must return ErrNotHeld without freeing the next holder's lock.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	client := client(t, start(t))
	revoke := func(key string) {
		var id int64
		if _, err := fmt.Sscanf(key[strings.LastIndex(key, "/")+1:], "%x", &id); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Revoke(t.Context(), clientv3.LeaseID(id)); err != nil {
			t.Fatal(err)
		}
	}
	each(t, func(t *testing.T, options etcd.Options) {
		holder, other := open(t, client, options, 2*time.Second), open(t, client, options, 2*time.Second)
		lease := acquire(t, holder, "key")
		next := waits(t.Context(), t, other, client)
		old := keys(t, client)[1]
		revoke(old)
		poll.Until(t, "the waiter queues up again", func() bool {
			now := keys(t, client)
			return len(now) == 2 && now[1] != old
		})
		revoke(keys(t, client)[0])
		second := served(t, next)
		if token(second) <= token(lease) {
			t.Errorf("token %d came after %d", token(second), token(lease))
		}
		select {
		case <-lease.(strategies.Watched).Lost():
		case <-time.After(drive.Bound):
			t.Error("Lost is not closed")
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

// While etcd is paused, each of these calls must return when its context ends: a wait, joining the queue, making a
// session, and a release. An Acquire must return ErrClosed when its Locker is closed.
func TestEtcdHangs(t *testing.T) {
	t.Parallel()
	server := start(t)
	client := client(t, server)
	each(t, func(t *testing.T, options etcd.Options) {
		locker := open(t, client, options, ttl)
		lease := acquire(t, locker, "key")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := waits(ctx, t, locker, client)
		do(t, server.Own[0].Pause)
		cancel()
		if got := <-waiting; !errors.Is(got.err, context.Canceled) {
			t.Errorf("a wait that was given up returned %v", got.err)
		}
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		for range 2 {
			if _, err := locker.Acquire(short(), "key"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an acquire returned %v", err)
			}
		}
		if err := lease.Release(short()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a release returned %v", err)
		}
		do(t, server.Own[0].Resume)
		release(t, acquire(t, locker, "key")) // the unanswered release ended its session
		poll.Until(t, "no key is left", func() bool { return len(keys(t, client)) == 0 })
		do(t, server.Own[0].Pause)
		closed := make(chan error, 1)
		other := open(t, client, options, ttl)
		go func() { _, err := other.Acquire(t.Context(), "key"); closed <- err }()
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if err := <-closed; !errors.Is(err, strategies.ErrClosed) {
			t.Errorf("an acquire of a closed Locker returned %v", err)
		}
		do(t, server.Own[0].Resume)
	})
}

// Ten acquisitions must share one session, whose TTL is the Locker's TTL rounded up to whole seconds.
func TestSessions(t *testing.T) {
	t.Parallel()
	client := client(t, start(t))
	locker := open(t, client, etcd.Defaults(), 2500*time.Millisecond)
	for range 10 {
		release(t, acquire(t, locker, "key"))
	}
	all, err := client.Leases(t.Context())
	if err != nil || len(all.Leases) != 1 {
		t.Fatalf("%+v are left (%v)", all, err)
	}
	if told, err := client.TimeToLive(t.Context(), all.Leases[0].ID); err != nil || told.GrantedTTL != 3 {
		t.Errorf("the lease lasts for %d s (%v)", told.GrantedTTL, err)
	}
	if _, err := etcd.Open(etcd.Config{Nodes: []*clientv3.Client{client}, TTL: ttl}, etcd.Options{}); err == nil {
		t.Error("an unknown way to wait was taken")
	}
}

// Claim: a Mutex watches from a past revision, and etcd serves such watches only every 100 ms. Two clients acquire the
// lock in turn. When they watch from the next revision, they must need less than half of the time that they need with
// the Mutex. On an idle machine, they need a fifteenth. Both variants run on one etcd, so that a busy machine slows
// down both. The test compares medians, because in some rounds the Mutex may happen not to wait for the end of these
// intervals.
func TestMutexHandoffInSteps(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // where a sync takes no time, however busy the disk is
	}
	const turns = 20
	client := client(t, start(t))
	took := map[etcd.Watch][]time.Duration{}
	for range 3 {
		for _, watch := range []etcd.Watch{etcd.ByMutex, etcd.ByNext} {
			took[watch] = append(took[watch], inTurns(t, client, turns, watch, watch))
		}
	}
	median := func(watch etcd.Watch) time.Duration {
		slices.Sort(took[watch])
		return took[watch][len(took[watch])/2]
	}
	mutex, next := median(etcd.ByMutex), median(etcd.ByNext)
	t.Logf("%d turns of two clients take %v by Mutex, %v by the next revision", turns, mutex, next)
	if next*2 >= mutex {
		t.Errorf("%d turns take %v by Mutex and %v by the next revision: there is no step", turns, mutex, next)
	}
	inTurns(t, client, turns, etcd.ByMutex, etcd.ByNext) // both kinds of waiters exclude each other
}

// inTurns runs one client for each element of ways. It returns how long these clients need to acquire one lock turns
// times in total.
func inTurns(t *testing.T, client *clientv3.Client, turns int64, ways ...etcd.Watch) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	var begun, inside atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for _, watch := range ways {
		locker := open(t, client, etcd.Options{Watch: watch}, ttl)
		clients.Go(func() {
			defer locker.Close()
			for begun.Add(1) <= turns {
				lease, err := locker.Acquire(ctx, "key")
				if err == nil {
					if inside.Add(1) != 1 {
						t.Error("two hold the lock")
					}
					inside.Add(-1)
					err = lease.Release(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return time.Since(began)
}
