package servers

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies/goredis"
)

var _ store.Target = (*Server)(nil)

func TestConnectFillsThePool(t *testing.T) {
	s := open(t, Options{Address: process(t).Addr()})
	const pool = 20
	node := clientsOf(t, s, pool)[0]
	if stats := node.Client.PoolStats(); stats.TotalConns != pool || stats.IdleConns != pool || stats.Timeouts != 0 {
		t.Errorf("pool = %+v, want %d idle connections", stats, pool)
	}
	left, err := s.Leftovers(t.Context(), "mark", clientsName)
	if err != nil || len(left.Connections) != pool {
		t.Errorf("%d connections carry the name, %v; want %d", len(left.Connections), err, pool)
	}
	// A strategy may open a client of its own with the node's options. Its traffic must count as the run's, not as
	// foreign.
	before := readOf(t, s)
	own, err := goredis.Dial(node, func(*redis.Options) {})
	must(t, err)
	defer own.Close()
	must(t, own.Ping(t.Context()).Err())
	if d := readOf(t, s).Since(before, 0); *d.OtherTraffic != 0 {
		t.Errorf("a client made of the node's options is not counted: %.1f %% foreign", *d.OtherTraffic)
	}
	conn, err := node.Options.Dialer(t.Context(), "tcp", node.Options.Addrs[0])
	must(t, err)
	defer conn.Close()
	if _, ok := conn.(syscall.Conn); !ok {
		t.Error("go-redis cannot see whether a connection is stale")
	}
}

// The server stalls for 3 s during a PING, which must then succeed. When the server is dead, each error must wrap
// ErrUnreachable.
func TestStalledServer(t *testing.T) {
	t.Parallel()
	p := process(t)
	s := open(t, Options{Address: p.Addr()})
	client := clientsOf(t, s, 1)[0].Client
	must(t, p.Pause(t.Context()))
	resumed := make(chan error, 1)
	timer := time.AfterFunc(3*time.Second, func() { resumed <- p.Resume(t.Context()) })
	defer timer.Stop()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping over a stall of 3 s: %v", err)
	}
	must(t, <-resumed, p.Kill(t.Context()))
	_, read := s.Read(t.Context())
	_, connected := s.Clients(t.Context(), clientsName, 2, nil)
	_, timed := s.RoundTrips(t.Context(), clientsName)
	for what, err := range map[string]error{
		"read": read, "connect": connected, "time": timed, "ping": s.Ping(t.Context()),
	} {
		if !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", what, err)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	s := open(t, Options{Address: process(t, "--maxclients", "10").Addr()})
	limits, err := s.Limits(t.Context())
	if err != nil || limits.MaxClients != 10 || limits.Connected < 1 {
		t.Errorf("limits = %+v, %v", limits, err)
	}
	_, err = s.Clients(t.Context(), clientsName, 20, nil)
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("20 connections of 10: %v", err)
	}
	// Clients must close the connections that it opened before the server refused one. Redis notices this with a delay.
	poll.Until(t, "the connections end", func() bool {
		left, err := s.Leftovers(t.Context(), "mark", clientsName)
		return err == nil && len(left.Connections) == 0
	})
}

func TestThousandsOfConnections(t *testing.T) {
	s := open(t, Options{Address: "process"})
	limits, err := s.Limits(t.Context())
	must(t, err)
	const pool = 2000 // make soak opens ten thousand
	if limits.MaxClients < pool+10 {
		t.Skipf("the file limit here allows Redis %d connections only", limits.MaxClients)
	}
	clientsOf(t, s, pool)
	if r := readOf(t, s); r.Clients < pool {
		t.Errorf("%d connections, want %d", r.Clients, pool)
	}
}

func TestPasswordAndUser(t *testing.T) {
	p := process(t, "--requirepass", "s3cr3t", "--user", "me", "on", ">p/w@", "~*", "&*", "+@all")
	for _, who := range []string{":s3cr3t@", "me:p%2Fw%40@"} {
		s := open(t, Options{Address: "redis://" + who + p.Addr() + "/1"})
		if text := fmt.Sprintf("%+v", s.Describe()); strings.Contains(text, "s3cr3t") || strings.Contains(text, "p/w") {
			t.Errorf("the description contains the password: %s", text)
		}
		must(t, s.Ping(t.Context()))
	}
	for name, at := range map[string]string{
		"wrong password": ":wr0ng@" + p.Addr(), "no password": p.Addr(), "wrong user": "you:wr0ng@" + p.Addr(),
		"database 99": ":s3cr3t@" + p.Addr() + "/99",
	} {
		said := refuses(t, Options{Address: "redis://" + at}, ErrConfig)
		if strings.Contains(said, "wr0ng") || strings.Contains(said, "s3cr3t") || strings.Contains(said, "\n") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestWithoutInfo uses a Redis that permits little more than commands on data, like some managed services. Figures that
// need a refused command must be nil, and everything else must work.
func TestWithoutInfo(t *testing.T) {
	p := process(t, "--user", "little", "on", ">pw", "~*", "&*", "+@all",
		"-info", "-config", "-client|list", "-pubsub|channels", "-eval", "-evalsha", "-script")
	s := open(t, Options{Address: "redis://little:pw@" + p.Addr()})
	ctx := t.Context()
	if about := s.Describe(); about.Version == "" || about.Mode != "standalone" {
		t.Errorf("version and mode are known from HELLO, got %+v", about)
	}
	r := readOf(t, s)
	if r.Commands != nil || r.BytesIn != nil || r.BytesOut != nil || r.CPU != nil || r.MainCPU != nil {
		t.Errorf("figures that were refused are nil, got %+v", r)
	}
	if r.RoundTrips == 0 || r.ClientBytesOut == 0 || r.ClientBytesIn == 0 {
		t.Errorf("our own counts are there all the same, got %+v", r)
	}
	if limits, err := s.Limits(ctx); err != nil || limits != (store.Limits{}) {
		t.Errorf("limits = %+v, %v", limits, err)
	}
	if n := s.Subscriptions(ctx); n != nil {
		t.Errorf("subscriptions = %d, want nil", *n)
	}
	times, err := s.RoundTrips(ctx, clientsName)
	if err != nil || times.PingP50 == nil || times.ScriptP50 != nil || times.ScriptP99 != nil {
		t.Errorf("round trips %+v, %v; want those of PING alone", times, err)
	}
	must(t, s.nodes[0].observer.Set(ctx, "mark", "", 0).Err())
	left, err := s.Leftovers(ctx, "mark", "nobody")
	if err != nil || len(left.Keys) != 1 {
		t.Errorf("leftovers = %+v, %v", left, err)
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Errorf("remove: %v", err)
	}
	if n := s.nodes[0].observer.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	process(t, "--unixsocket", socket)
	s := open(t, Options{Address: "unix://" + socket + "?db=1"})
	if about := s.Describe(); about.Address != socket || about.Network != "unix socket" {
		t.Errorf("description %+v", about)
	}
	clientsOf(t, s, 2)
	if r := readOf(t, s); r.Clients < 3 || r.RoundTrips == 0 {
		t.Errorf("reading %+v", r)
	}
}

func TestLeftovers(t *testing.T) {
	s := open(t, Options{Address: process(t).Addr(), RunID: "r1"})
	ctx := t.Context()
	const mark = "lockbench:{r1:"
	client := clientsOf(t, s, 1)[0].Client
	pipe := client.Pipeline()
	for i := range 2500 {
		pipe.Set(ctx, fmt.Sprintf("queue:lockbench:{r1:%d}:tail", i), "", 0)
	}
	pipe.Set(ctx, "lockbench:{r2:0}", "of another run", 0)
	pipe.Set(ctx, "somebody else's", "", 0)
	_, err := pipe.Exec(ctx)
	must(t, err)
	for _, subscribed := range []*redis.PubSub{
		client.Subscribe(ctx, "lockbench:{r1:0}:channel"), client.Subscribe(ctx, "other"),
		client.PSubscribe(ctx, "*"), client.SSubscribe(ctx, "shard"),
	} {
		defer subscribed.Close()
		_, err := subscribed.Receive(ctx)
		must(t, err)
	}
	if n := s.Subscriptions(ctx); n == nil || *n != 4 {
		t.Errorf("subscriptions = %v, want 2 channels, a pattern and a sharded one", n)
	}
	left, err := s.Leftovers(ctx, mark, clientsName)
	must(t, err)
	// Five connections have the CLIENT name: one of the pool and four of PubSubs.
	if len(left.Keys) != 2500 || len(left.Channels) != 1 || len(left.Connections) != 5 {
		t.Errorf("%d keys, channels %v, connections %v", len(left.Keys), left.Channels, left.Connections)
	}
	must(t, s.Remove(ctx, left.Keys))
	if n := client.DBSize(ctx).Val(); n != 2 {
		t.Errorf("%d keys are left, want the two that are not ours", n)
	}
	if err := s.Remove(ctx, nil); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
	// The mark contains glob characters. Leftovers must take them literally, so only the first key matches.
	for _, key := range []string{`a[b]*?\c`, "ab*?c", `a[b]x?\c`} {
		must(t, client.Set(ctx, key, "", 0).Err())
	}
	odd, err := s.Leftovers(ctx, `[b]*?\`, "nobody")
	if err != nil || len(odd.Keys) != 1 || odd.Keys[0] != `a[b]*?\c` {
		t.Errorf("leftovers = %v, %v", odd.Keys, err)
	}
}
