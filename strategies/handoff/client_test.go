package handoff_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	ours "github.com/lockbench/lockbench/strategies/lock"
)

// The lock's commands go through the service's client, with all its options. Each test in this file uses a client
// configuration that a service may have but that the conformance suite does not cover.

// serve returns a Locker that uses the service's client. The test fails if closing the Locker takes longer than a
// minute.
func serve(t *testing.T, client *redis.Client, options ...ours.Option) *ours.FencedLocker {
	t.Helper()
	locker, err := handoff.New(client, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan error, 1)
		go func() { closed <- locker.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Error("close: ", err)
			}
		case <-time.After(time.Minute):
			t.Error("Close does not end")
		}
		_ = client.Close()
	})
	return locker
}

// pass acquires the lock on key and releases it. An error fails the test.
func pass(t *testing.T, locker *ours.FencedLocker, key string) {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), key)
	if err == nil {
		err = lease.Release(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tunnel is a connection without deadlines, such as one through SSH. While silent is set, data written to it is lost.
type tunnel struct {
	net.Conn
	silent *atomic.Bool
}

func (tunnel) SetDeadline(time.Time) error      { return errors.New("deadlines are not supported") }
func (tunnel) SetReadDeadline(time.Time) error  { return errors.New("deadlines are not supported") }
func (tunnel) SetWriteDeadline(time.Time) error { return errors.New("deadlines are not supported") }

func (c tunnel) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// On a connection without deadlines that no longer carries data, each call ends when its context ends. If the context
// has no deadline, Acquire and TryAcquire end after the duration patience.
func TestHalfOpenConnectionWithoutDeadlines(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var silent atomic.Bool
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, ReadTimeout: -2, WriteTimeout: -2,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, address)
			return tunnel{conn, &silent}, err
		},
	})
	locker := serve(t, client, ours.TTL(time.Minute))
	lease, err := locker.Acquire(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	brief := func(call func(ctx context.Context) error) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			return call(ctx)
		}
	}
	acquire := func(ctx context.Context) error { _, err := locker.Acquire(ctx, "key"); return err }
	try := func(ctx context.Context) error { _, err := locker.TryAcquire(ctx, "key"); return err }
	extend := func(ctx context.Context) error { return lease.Extend(ctx, time.Minute) }
	var all sync.WaitGroup
	for name, call := range map[string]func() error{
		"Acquire": brief(acquire), "TryAcquire": brief(try), "Extend": brief(extend), "Release": brief(lease.Release),
		"Acquire without a deadline":    func() error { return acquire(context.Background()) },
		"TryAcquire without a deadline": func() error { return try(context.Background()) },
	} {
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		all.Go(func() {
			select {
			case err := <-ended:
				if err == nil || errors.Is(err, ours.ErrHeld) {
					t.Errorf("%s returned %v", name, err)
				}
			case <-time.After(30 * time.Second): // several times patience
				t.Errorf("%s has not returned", name)
			}
		})
	}
	all.Wait()
}

// limiter is a redis.Limiter that refuses all commands while closed is set. It counts the calls of Allow.
type limiter struct {
	closed atomic.Bool
	asked  atomic.Int64
}

var errLimit = errors.New("the circuit is open")

func (l *limiter) Allow() error {
	l.asked.Add(1)
	if l.closed.Load() {
		return errLimit
	}
	return nil
}
func (l *limiter) ReportResult(error) {}

// A command that the client's Limiter refuses is not sent. The caller gets the Limiter's error after one try, and no
// pending release is sent later.
func TestLimiterRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limit := new(limiter)
	locker := serve(t, redis.NewClient(&redis.Options{Addr: server.Addr, Limiter: limit}))
	pass(t, locker, "key")
	limit.closed.Store(true)
	before := limit.asked.Load()
	for _, ask := range []func() error{
		func() error { _, err := locker.Acquire(t.Context(), "key"); return err },
		func() error { _, err := locker.TryAcquire(t.Context(), "key"); return err },
	} {
		if err := ask(); !errors.Is(err, errLimit) {
			t.Errorf("the error is %v", err)
		}
	}
	time.Sleep(100 * time.Millisecond) // enough for a pending release to ask again
	if n := limit.asked.Load() - before; n != 2 {
		t.Errorf("two calls asked the Limiter %d times", n)
	}
	limit.closed.Store(false)
	pass(t, locker, "key")
}

// tracer is a hook that counts commands by name.
type tracer struct {
	mu   sync.Mutex
	seen map[string]int
}

func (*tracer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *tracer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		h.count(command)
		return next(ctx, command)
	}
}

func (h *tracer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		h.count(commands...)
		return next(ctx, commands)
	}
}

func (h *tracer) count(commands ...redis.Cmder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, command := range commands {
		h.seen[command.Name()]++
	}
}

// The client's hooks, such as those of redisotel, see each command of the lock.
func TestHooksSeeTheCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	hook := &tracer{seen: map[string]int{}}
	client.AddHook(hook)
	locker := serve(t, client)
	before, err := client.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	clear(hook.seen)
	for range 5 {
		pass(t, locker, "key")
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	if hook.seen["set"] != 5 || hook.seen["time"] != 5 || len(hook.seen) < 3 {
		t.Errorf("five acquisitions show the hook %v; Redis had %v before", hook.seen, before)
	}
}

// While opening a connection takes longer than patience, calls may fail. Once a connection is open, calls succeed.
func TestSlowDial(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var dialled atomic.Int64
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, DialTimeout: 30 * time.Second,
		OnConnect: func(context.Context, *redis.Conn) error {
			dialled.Add(1)
			time.Sleep(handoff.Patience + time.Second)
			return nil
		},
	})
	locker := serve(t, client)
	poll.Until(t, "the lock is acquired", func() bool {
		lease, err := locker.Acquire(t.Context(), "key")
		return err == nil && lease.Release(t.Context()) == nil
	})
	pass(t, locker, "key")
	if n := dialled.Load(); n == 0 {
		t.Error("OnConnect was not called")
	}
}

// The connections of the lock's commands respect ConnMaxLifetime: with a lifetime of 20 ms, three acquisitions 50 ms
// apart use three connections.
func TestConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	look := lookAt(t, server)
	locker := serve(t, redis.NewClient(&redis.Options{
		Addr: server.Addr, ConnMaxLifetime: 20 * time.Millisecond, ClientName: "service", PipelinePoolSize: -1,
	}))
	ids := map[string]bool{}
	for range 3 {
		pass(t, locker, "key")
		for line := range strings.Lines(look.ClientList(t.Context()).Val()) {
			if strings.Contains(line, " name=service ") {
				id, _, _ := strings.Cut(line, " ")
				ids[id] = true
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(ids) < 3 {
		t.Errorf("connections that live for 20 ms had the ids %v in 150 ms", ids)
	}
}

// repeating is a StreamingCredentialsProvider that sends the same credentials every 200 ms. While go-redis
// re-authenticates a connection, it sends no other command on this connection.
type repeating struct{}

func (repeating) Subscribe(to auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	same := auth.NewBasicCredentials("app", "secret")
	over := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(200 * time.Millisecond):
				to.OnNext(same)
			}
		}
	})
	var once sync.Once
	return same, func() error { once.Do(func() { close(over); ended.Wait() }); return nil }, nil
}

// The lock does not open a new connection for each command, even if RESP3 pushes arrive on its connections or the
// credentials are sent repeatedly.
func TestPushesAndCredentialsCostNoConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	look := lookAt(t, server)
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, PipelinePoolSize: -1, StreamingCredentialsProvider: repeating{},
		OnConnect: func(ctx context.Context, conn *redis.Conn) error {
			return conn.Do(ctx, "client", "tracking", "on", "bcast").Err() // each write pushes an invalidation
		},
	})
	do(t, look, "ACL SETUSER app on >secret allkeys allchannels allcommands")
	locker := serve(t, client)
	pass(t, locker, "key")
	connected := func() int64 { return info(t, look, "stats", "total_connections_received") }
	before := connected()
	began := time.Now()
	for range 300 {
		pass(t, locker, "key")
	}
	// Credentials arrive every 200 ms, and go-redis may dial a new connection each time. The limit allows twice that
	// number of connections, plus 20.
	if n, most := connected()-before, 20+int64(time.Since(began)/(100*time.Millisecond)); n > most {
		t.Errorf("300 acquisitions made %d connections in %v", n, time.Since(began))
	}
}

// If concurrent calls of TryAcquire fail because of an outage, none of them returns ErrHeld, because the failure of one
// call does not mean that the lock is held. If the lock is free, exactly one call gets it.
func TestConcurrentTries(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(server *redistest.Server, look *redis.Client){
		"outage":     func(server *redistest.Server, _ *redis.Client) { server.Pause() },
		"NOREPLICAS": func(_ *redistest.Server, look *redis.Client) { do(t, look, "CONFIG SET min-replicas-to-write 1") },
		"OOM":        func(_ *redistest.Server, look *redis.Client) { do(t, look, "CONFIG SET maxmemory 1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			look := lookAt(t, server)
			locker := serve(t, redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: 500 * time.Millisecond}))
			pass(t, locker, "key")
			begin(server, look)
			const tries = 50
			problems := together(tries, func() error { _, err := locker.TryAcquire(t.Context(), "key"); return err })
			if n := len(slices.DeleteFunc(problems, func(err error) bool { return !errors.Is(err, ours.ErrHeld) })); n > 0 {
				t.Errorf("%d of %d tries returned ErrHeld", n, tries)
			}
			if name == "outage" {
				server.Resume()
			}
		})
	}
	t.Run("free", func(t *testing.T) {
		t.Parallel()
		locker := serve(t, redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr}))
		got := together(50, func() error { _, err := locker.TryAcquire(t.Context(), "key"); return err })
		if n := len(slices.DeleteFunc(got, func(err error) bool { return err != nil })); n != 1 {
			t.Errorf("%d of 50 tries have the lock", n)
		}
	})
}

func together(n int, call func() error) []error {
	var all sync.WaitGroup
	problems := make([]error, n)
	for i := range problems {
		all.Go(func() { problems[i] = call() })
	}
	all.Wait()
	return problems
}

// Redis refuses the holder's first release. The process must repeat the release, so the waiter gets the lock long
// before the TTL of an hour has passed.
func TestReleaseIsRepeated(t *testing.T) {
	onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
		a, b := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease := a.Acquire(t, "key")
		q.join("b", b)
		do(t, q.server, "CONFIG SET min-replicas-to-write 1")
		if err := lease.Release(t.Context()); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
			t.Errorf("the release returned %v", err)
		}
		do(t, q.server, "CONFIG SET min-replicas-to-write 0")
		trial.Release(t, q.next("b"))
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("the release, once more: %v", err)
		}
		q.nothingLeft(a, b)
	})
}

// Close removes the process's entry from the lock's queue in Redis, even if 100 entries of other processes are ahead of
// it and 100 are behind it.
func TestCloseLeavesNoQueueEntries(t *testing.T) {
	onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
		p := trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease := acquire(t, trial.Start(t, server, variant, time.Hour))
		for n := range 100 {
			q.server.RPush(t.Context(), list, entry("X", n, time.Hour))
		}
		q.join("p", p)
		for n := range 100 {
			q.server.RPush(t.Context(), list, entry("Y", n, time.Hour))
		}
		if err := p.Locker.Close(); err != nil {
			t.Error(err)
		}
		if n := q.length(); n != 200 {
			t.Errorf("the queue has %d entries of others' 200", n)
		}
		q.server.Del(t.Context(), list)
		released(t, lease)
	})
}

// late is a hook that delays the replies to each pipeline by 100 ms.
type late struct{ tracer }

func (*late) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		defer time.Sleep(100 * time.Millisecond)
		return next(ctx, commands)
	}
}

// If the reply to a request arrives after the lease has expired, TryAcquire returns an error other than ErrHeld,
// because no other client holds the lock.
func TestLateAnswerIsNotErrHeld(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	client.AddHook(&late{tracer{seen: map[string]int{}}})
	locker := serve(t, client, ours.TTL(50*time.Millisecond))
	if _, err := locker.TryAcquire(t.Context(), "key"); err == nil || errors.Is(err, ours.ErrHeld) {
		t.Errorf("a grant that came too late: %v", err)
	}
}
