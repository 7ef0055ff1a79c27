// Package realredis starts separate, real Redis servers for a test. It imports no package of the benchmark, so that a
// module whose lock is tested with package locktest needs few other modules.
package realredis

import (
	"context"
	_ "embed" // the library's source
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// silence is a logger that writes nothing.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Quiet turns off go-redis's logger, which would log each failed connection to a server that has not started yet.
var Quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

// Explain returns err, the error of a failed start. If there is neither a redis-server nor a container engine, it
// instead returns an error that names the ways to get a server.
func Explain(err error) error {
	if _, missing := redisserver.LookProgram(""); missing == nil || !errors.Is(err, launch.ErrNoEngine) {
		return err
	}
	return errors.New("there is neither redis-server nor valkey-server on PATH: install one (apt-get install " +
		"redis-server, brew install redis), name a program in LOCKBENCH_REDIS_SERVER, or, to start containers, " +
		"import github.com/lockbench/lockbench/docker in the test and call docker.Quiet in an init function")
}

// Server is a running Redis that belongs to one test.
type Server struct {
	Addr string // host:port

	t   testing.TB
	own *redisserver.Pair
}

// Start starts a redis-server with these extra arguments, and stops it when the test ends. The test fails if there is
// no Redis.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is like Start, with additional environment variables, such as NAME=value.
func startWith(t testing.TB, env []string, args ...string) *Server {
	t.Helper()
	Quiet()
	start := func(ctx context.Context) (*redisserver.Own, error) {
		return redisserver.Start(ctx, redisserver.Options{Env: env},
			append([]string{"--maxclients", "2000"}, args...)...) // with more, each start takes milliseconds longer
	}
	first, err := start(t.Context())
	if err != nil {
		t.Fatalf("this test needs a Redis: %v", Explain(err))
	}
	own := redisserver.NewPair(first, start)
	s := &Server{Addr: own.Addr(), t: t, own: own}
	t.Cleanup(func() { s.do("stop", own.Close) })
	return s
}

// URL returns the server's redis:// address.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Node returns the server in the form that strategies receive, with a client that is closed when the test ends.
func (s *Server) Node(t testing.TB) goredis.Node {
	t.Helper()
	options := &redis.UniversalOptions{
		Addrs:                 []string{s.Addr},
		MaxRetries:            -1,
		DialerRetries:         1,
		PoolSize:              64,
		PoolTimeout:           30 * time.Second,
		ReadTimeout:           10 * time.Second,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		PipelinePoolSize:      -1,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: options}
}

// Client returns a separate client with which a test examines the server. It is closed when the test ends.
func (s *Server) Client(t testing.TB) redis.UniversalClient {
	t.Helper()
	return Look(t, &redis.Options{Addr: s.Addr})
}

// Dial opens a client for a URL, which may contain go-redis's options, such as
// redis://user:secret@ADDRESS?max_retries=3. The client is closed when the test ends.
func Dial(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options.DisableIdentity = true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// DialCluster opens a client of a cluster, which is closed when the test ends.
func DialCluster(t testing.TB, password string, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Password: password})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// NoClients returns a nil client of each type, to test that constructors reject it.
func NoClients() []redis.UniversalClient {
	return []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)}
}

// Hear subscribes to sharded channels until the test ends, so that their messages have a receiver.
func Hear(t testing.TB, client redis.UniversalClient, channels ...string) {
	t.Helper()
	ear := client.SSubscribe(t.Context(), channels...)
	for range channels {
		if _, err := ear.ReceiveTimeout(t.Context(), 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for err := error(nil); err == nil; {
			_, err = ear.Receive(t.Context())
		}
	}()
	t.Cleanup(func() { _ = ear.Close(); <-over })
}

// Look opens a client that sends only the test's commands: no CLIENT SETINFO and no retries.
func Look(t testing.TB, o *redis.Options) *redis.Client {
	o.MaxRetries, o.DisableIdentity = -1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Kill ends the server as a crash would.
func (s *Server) Kill() { s.t.Helper(); s.do("kill", s.own.Kill) }

// Pause stops the server with SIGSTOP. Its connections stay open.
func (s *Server) Pause() { s.t.Helper(); s.do("pause", s.own.Pause) }

// Resume continues a paused server.
func (s *Server) Resume() { s.t.Helper(); s.do("resume", s.own.Resume) }

// Save makes the server write its data to disk.
func (s *Server) Save() { s.t.Helper(); s.do("save", s.own.Save) }

// Restart starts the server again, empty and on the same port.
func (s *Server) Restart(t testing.TB) { t.Helper(); s.do("restart", s.own.Restart) }

// RestartWithData restarts the server with the data that it last saved.
func (s *Server) RestartWithData(t testing.TB) {
	t.Helper()
	s.do("restart", s.own.RestartWithData)
}

// FailOver makes a replica the primary without a loss of data. The first call starts the replica.
func (s *Server) FailOver() { s.t.Helper(); s.do("fail over", s.own.FailOver) }

// Dial dials the server or, after a failover, the current primary.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.own.Dial(ctx, network, address)
}

func (s *Server) do(what string, do func(context.Context) error) {
	s.t.Helper()
	Bounded(s.t, what, do)
}

// Bounded runs an operation on a test's server with a time limit of two minutes. It also works in a clean-up, where the
// test's context has already ended.
func Bounded(t testing.TB, what string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := do(ctx); err != nil {
		t.Errorf("%s the test's Redis: %v", what, err)
	}
}

//go:embed testdata/clock.c
var clockSource []byte

// Clock sets the time that one Redis sees.
type Clock struct {
	t    testing.TB
	file *os.File
}

// StartSettable starts a Redis whose clock can be set. It skips the test if there is no C compiler, or if Redis does
// not run as a process on this machine.
func StartSettable(t testing.TB, args ...string) (*Server, *Clock) {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("to set Redis's clock takes a C compiler: ", err)
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command(compiler, "-shared", "-fPIC", "-o", library, source, "-ldl")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Skipf("the library that sets Redis's clock cannot be made: %v: %s", err, output)
	}
	file, err := os.Create(filepath.Join(dir, "ahead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	c := &Clock{t, file}
	c.Set(0)
	server := startWith(t, []string{"LD_PRELOAD=" + library, "CLOCK_AHEAD=" + file.Name()}, args...)
	const step = time.Hour
	c.Set(step)
	now, err := server.Client(t).Time(t.Context()).Result()
	if off := time.Until(now) - step; err != nil || off.Abs() > step/2 {
		t.Skipf("Redis's clock cannot be set here: it is off by %v, %v", off, err)
	}
	c.Set(0)
	return server, c
}

// Set makes the server's clock run ahead of real time by the given duration, or behind it if the duration is negative.
func (c *Clock) Set(ahead time.Duration) {
	c.t.Helper()
	ahead64 := uint64(ahead.Microseconds()) //nolint:gosec // the sign is kept
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, ahead64), 0); err != nil {
		c.t.Errorf("set Redis's clock: %v", err)
	}
}
