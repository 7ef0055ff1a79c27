package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// free is a script that deletes each key whose value equals the argument at the same index.
var free = redis.NewScript(`local freed = {}
for i, key in ipairs(KEYS) do
  freed[i] = redis.call('GET', key) == ARGV[i] and redis.call('DEL', key) or 0
end
return freed`)

// slow is a hook that counts the exchanges and holds each back until gate is closed.
type slow struct {
	begun atomic.Int64
	gate  chan struct{}
}

func (s *slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.begun.Add(1)
		<-s.gate
		return next(ctx, cmd)
	}
}

func (s *slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.begun.Add(1)
		<-s.gate
		return next(ctx, cmds)
	}
}

func dial(t *testing.T, client *redis.Client, most time.Duration) *pipeline.Conn {
	t.Helper()
	conn, err := pipeline.Dial(goredis.Node{Client: client}, most, free.Hash())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// connect returns a client with go-redis's defaults. By default, the end of a context does not end a command that is
// under way.
func connect(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	o.DisableIdentity = true
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// While four exchanges are under way, 80 callers queue: half of them run the script, the others send a SET. They must
// share two exchanges, each with one TIME and one run of the script. Each caller must get its own reply, and the
// callers of SET a time that Redis read after it had executed the SET.
func TestCallersShareAnExchange(t *testing.T) {
	t.Parallel()
	const callers = 40
	server := redistest.Start(t)
	client := connect(t, &redis.Options{Addr: server.Addr})
	if err := free.Load(t.Context(), client).Err(); err != nil {
		t.Fatal(err)
	}
	hold := &slow{gate: make(chan struct{})}
	client.AddHook(hold)
	conn := dial(t, client, time.Minute)
	admin := connect(t, &redis.Options{Addr: server.Addr})
	for _, key := range []string{"held-1", "held-3"} {
		admin.Set(t.Context(), key, "me", 0)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { _ = conn.Send(t.Context(), redis.NewCmd(t.Context(), "ping")) })
	}
	poll.Until(t, "four exchanges are under way", func() bool { return hold.begun.Load() == 4 })
	freed, times := make([]any, callers), make([]int64, callers)
	problems := make(chan error, 2*callers)
	for n := range callers {
		all.Go(func() {
			key, value := fmt.Sprint("held-", n), "me"
			var err error
			freed[n], err = conn.Run(t.Context(), &key, &value)
			problems <- err
		})
		all.Go(func() {
			var err error
			times[n], err = conn.SendTimed(t.Context(), redis.NewCmd(t.Context(), "set", fmt.Sprint("key-", n), n))
			problems <- err
		})
	}
	poll.Until(t, "all have queued", func() bool { return pipeline.Queued(conn) == 2*callers })
	before, _ := admin.Time(t.Context()).Result()
	calls := locktest.Calls(t, admin, func() {
		close(hold.gate)
		all.Wait()
	})
	close(problems)
	for err := range problems {
		if err != nil {
			t.Error(err)
		}
	}
	// The 80 callers fit into two exchanges, of 64 and 16 calls.
	if calls["time"] > 2 || calls["evalsha"] > 2 || calls["set"] != callers {
		t.Errorf("%d callers sent %v", 2*callers, calls)
	}
	for n := range callers {
		want := any(int64(0))
		if n == 1 || n == 3 {
			want = int64(1)
		}
		if freed[n] != want {
			t.Errorf("caller %d of the script got %v, want %v", n, freed[n], want)
		}
		if times[n] < before.UnixMicro() {
			t.Errorf("caller %d has the time %d, before its command", n, times[n])
		}
	}
}

// Five calls end with their contexts while no reply arrives. The first four were sent, so MayHaveRun must be true. The
// fifth was still queued, so it must not be sent, and MayHaveRun must be false.
func TestContextEndsACall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, &redis.Options{Addr: server.Addr})
	hold := &slow{gate: make(chan struct{})}
	client.AddHook(hold)
	conn := dial(t, client, time.Minute)
	for n := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- conn.Send(ctx, redis.NewCmd(ctx, "incr", "count")) }()
		poll.Until(t, "it was sent, or has queued", func() bool {
			return hold.begun.Load() == int64(min(n+1, 4)) && pipeline.Queued(conn) == max(0, n-3)
		})
		cancel()
		err := <-over
		if sent := n < 4; !errors.Is(err, context.Canceled) || indeterminate.MayHaveRun(err) != sent {
			t.Errorf("call %d ended with %v, which may have run: %v", n, err, indeterminate.MayHaveRun(err))
		}
	}
	close(hold.gate)
	poll.Until(t, "what was sent is carried out", func() bool {
		n, _ := client.Get(t.Context(), "count").Int()
		return n == 4
	})
}

// The connections do not support deadlines, and all replies are lost. All calls and Close must still end, because the
// Conn gives up when it has got no reply for the time limit most.
func TestCallsWithoutAnswerEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var deaf atomic.Bool
	client := connect(t, &redis.Options{
		Addr: server.Addr, ReadTimeout: -2, WriteTimeout: -2, PoolSize: 100, PipelinePoolSize: -1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return tunnel{conn, &deaf}, err
		},
	})
	const most = 300 * time.Millisecond
	conn := dial(t, client, most)
	if err := conn.Send(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
		t.Fatal(err)
	}
	deaf.Store(true)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			err := conn.Send(context.Background(), redis.NewCmd(context.Background(), "ping"))
			if err == nil {
				t.Error("a call without an answer has no error")
			}
		})
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		_ = conn.Close()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("calls without an answer do not end")
	}
	_ = client.Close()
}

// tunnel is a connection that does not support deadlines, such as one through SSH. While deaf is set, it loses all
// replies.
type tunnel struct {
	net.Conn
	deaf *atomic.Bool
}

func (tunnel) SetDeadline(time.Time) error      { return errors.New("deadlines are not supported") }
func (tunnel) SetReadDeadline(time.Time) error  { return errors.New("deadlines are not supported") }
func (tunnel) SetWriteDeadline(time.Time) error { return errors.New("deadlines are not supported") }

func (c tunnel) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.deaf.Load() {
		return c.Conn.Read(make([]byte, 1)) // forever: the answer is lost
	}
	return n, err
}

// Redis is paused, and the client's ReadTimeout is a minute. Two calls, one after the other, must return within 20 s of
// the cancellation of their contexts. The first caller sends its own command. Another goroutine sends the command of
// the second.
func TestContextEndsSendingCaller(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, &redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	conn := dial(t, client, time.Minute)
	for range 2 { // the second finds a connection
		if err := conn.Send(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
			t.Fatal(err)
		}
	}
	server.Pause()
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		began := time.Now()
		err := conn.Send(ctx, redis.NewCmd(ctx, "ping"))
		if took := time.Since(began); took > 20*time.Second || !indeterminate.MayHaveRun(err) {
			t.Errorf("after %v: %v", took, err)
		}
	}
	server.Resume()
}

// 15,000 callers send commands that take Redis 0.4 ms each, so the last callers wait for longer than the Conn's time
// limit of 5 s. No call may fail, because replies keep arriving.
func TestSlowAnswersAreNotAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, &redis.Options{Addr: server.Addr, PipelinePoolSize: -1})
	const most = 5 * time.Second // 50 times as long as four exchanges take: the machine may be busy
	conn := dial(t, client, most)
	var all sync.WaitGroup
	began := time.Now()
	for range 15_000 {
		all.Go(func() { // 0.4 ms of Redis's time
			command := redis.NewCmd(context.Background(), "eval",
				"local t = redis.call('TIME') local e = t[1] * 1000000 + t[2] + 400 "+
					"repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] >= e return 1", 0)
			if err := conn.Send(context.Background(), command); err != nil || command.Err() != nil {
				t.Errorf("a slow answer: %v, %v", err, command.Err())
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took < most {
		t.Errorf("Redis took only %v for it", took)
	}
}

// refusing is a Limiter that refuses all commands. asked counts them.
type refusing struct{ asked atomic.Int64 }

var errLimit = errors.New("the circuit is open")

func (r *refusing) Allow() error       { r.asked.Add(1); return errLimit }
func (r *refusing) ReportResult(error) {}

// The client's Limiter refuses each command. The Conn must ask it only once per command, and MayHaveRun must be false
// for the error.
func TestLimiterIsAskedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limit := new(refusing)
	conn := dial(t, connect(t, &redis.Options{Addr: server.Addr, Limiter: limit, MaxRetries: -1}), time.Minute)
	for want := int64(1); want <= 3; want++ {
		err := conn.Send(t.Context(), redis.NewCmd(t.Context(), "ping"))
		if !errors.Is(err, errLimit) || indeterminate.MayHaveRun(err) {
			t.Errorf("the error is %v, which may have run: %v", err, indeterminate.MayHaveRun(err))
		}
		if got := limit.asked.Load(); got != want {
			t.Errorf("the limiter was asked %d times for %d commands", got, want)
		}
	}
}

// Each command makes Redis cut the connection, so its reply is lost. Redis must not execute the command twice, although
// the client has MaxRetries 5.
func TestCommandIsNotSentTwice(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, &redis.Options{Addr: server.Addr, MaxRetries: 5, MinRetryBackoff: time.Millisecond})
	conn := dial(t, client, time.Minute)
	for _, timed := range []bool{false, true} {
		before := locktest.Calls(t, client, func() {
			command := redis.NewCmd(t.Context(), "eval",
				"redis.call('INCR', 'count') redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no')", 0)
			var err error
			if timed {
				_, err = conn.SendTimed(t.Context(), command)
			} else {
				err = conn.Send(t.Context(), command)
			}
			if err == nil && command.Err() == nil {
				t.Error("the answer was not lost")
			}
		})
		if before["incr"] > 1 {
			t.Errorf("the command ran %d times", before["incr"])
		}
	}
}

// breaker is a hook that returns an error instead of sending a pipeline.
type breaker struct{ slow }

func (*breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (*breaker) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errLimit }
}

// go-redis does not send a pipeline, because a hook returns an error or because Redis refuses the password. The caller
// must get that error, and MayHaveRun must be false for it.
func TestUnsentPipelineReturnsReason(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := connect(t, &redis.Options{Addr: server.Addr, PoolSize: 1})
	broken := connect(t, &redis.Options{Addr: server.Addr})
	stale := connect(t, &redis.Options{Addr: server.Addr, Password: "old"})
	broken.AddHook(new(breaker))
	if err := admin.ConfigSet(t.Context(), "requirepass", "new").Err(); err != nil {
		t.Fatal(err)
	}
	for client, want := range map[*redis.Client]string{broken: errLimit.Error(), stale: "WRONGPASS"} {
		command := redis.NewCmd(t.Context(), "set", "key", "value")
		_, err := dial(t, client, time.Minute).SendTimed(t.Context(), command)
		if err == nil {
			err = command.Err()
		}
		if err == nil || !strings.Contains(err.Error(), want) || indeterminate.MayHaveRun(err) {
			t.Errorf("the error is %v, want %s of a command that was not sent", err, want)
		}
	}
}

// go-redis opens a new connection, and the dial hangs. The caller sends its own command, and must return within 20 s of
// the end of its context.
func TestContextEndsCallerWithoutConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var hang atomic.Bool
	client := connect(t, &redis.Options{
		Addr: server.Addr, ContextTimeoutEnabled: true, DialTimeout: time.Minute, PipelinePoolSize: -1,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			if hang.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})
	conn := dial(t, client, time.Minute)
	for range 2 {
		if err := conn.Send(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
			t.Fatal(err)
		}
	}
	hang.Store(true)
	connect(t, &redis.Options{Addr: server.Addr}).Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := conn.Send(ctx, redis.NewCmd(ctx, "ping"))
	if took := time.Since(began); took > 20*time.Second || err == nil {
		t.Errorf("after %v: %v", took, err)
	}
}

// far is a connection on which each read takes 300 ms longer.
type far struct{ net.Conn }

func (c far) Read(b []byte) (int, error) {
	time.Sleep(300 * time.Millisecond)
	return c.Conn.Read(b)
}

// Every reply takes at least 300 ms. Four commands, sent one after another by a client that allows direct calls, must
// succeed and use a single connection.
func TestSlowNetworkIsNotAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var dials atomic.Int64
	client := connect(t, &redis.Options{
		Addr: server.Addr, ContextTimeoutEnabled: true, Protocol: 2, PipelinePoolSize: -1,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return far{conn}, err
		},
	})
	conn := dial(t, client, time.Minute)
	for range 4 {
		if err := conn.Send(t.Context(), redis.NewCmd(t.Context(), "ping")); err != nil {
			t.Error(err)
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("four commands one after another took %d connections", n)
	}
}
