package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func open(t *testing.T, node goredis.Node) *pipeline.Client {
	t.Helper()
	client, err := pipeline.Open(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// eager is a node whose clients would send everything again, as go-redis's do by default.
func eager(t *testing.T, node goredis.Node) goredis.Node {
	return with(t, node, func(o *redis.UniversalOptions) {
		o.MaxRetries, o.MaxRedirects = 3, 3
		o.MinRetryBackoff, o.MaxRetryBackoff = -1, -1
	})
}

// with is a node whose client has other options.
func with(t *testing.T, node goredis.Node, change func(*redis.UniversalOptions)) goredis.Node {
	options := *goredis.OptionsOf(node)
	change(&options)
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}
}

// on is a node that is reached by a path.
func on(t *testing.T, path *network.Path, node goredis.Node) goredis.Node {
	return with(t, node, func(o *redis.UniversalOptions) { o.Dialer = path.Dial })
}

// loses has the answer to the next command be lost: Redis carries it out, and the connection ends instead.
func loses(path *network.Path) *network.Gate {
	g := path.Hold(network.LostAnswer, 0)
	go func() { <-g.Caught; g.Open() }()
	return g
}

// onceSent is a node that calls a function after the word was written to a connection.
func onceSent(t *testing.T, node goredis.Node, word string, call func()) goredis.Node {
	return with(t, node, func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			watched := func(b []byte, write func([]byte) (int, error)) (int, error) {
				n, err := write(b)
				if bytes.Contains(b, []byte(word)) {
					call()
				}
				return n, err
			}
			return intercept.Conn(conn, intercept.Hooks{Write: watched}), nil
		}
	})
}

func TestAllCallersShareOneConnection(t *testing.T) {
	server := redistest.Start(t)
	node, dials := countDials(t, server)
	client := open(t, node)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			key := fmt.Sprint("key", i)
			if taken, err := client.SetNX(t.Context(), key, i, time.Minute).Result(); err != nil || !taken {
				t.Errorf("SET NX %s: %v, %v", key, taken, err)
			}
			if taken, err := client.SetNX(t.Context(), key, "another", time.Minute).Result(); err != nil || taken {
				t.Errorf("SET NX %s again: %v, %v", key, taken, err)
			}
			const read = "return {redis.call('GET', KEYS[1]), ARGV[1]}"
			got, err := client.Eval(t.Context(), read, []string{key}, "x").StringSlice()
			if err != nil || len(got) != 2 || got[0] != fmt.Sprint(i) || got[1] != "x" {
				t.Errorf("EVAL %s: %q, %v", key, got, err)
			}
			if got, err := client.Do(t.Context(), "get", key).Text(); err != nil || got != fmt.Sprint(i) {
				t.Errorf("GET %s: %q, %v", key, got, err)
			}
		})
	}
	wg.Wait()
	if n := dials.Load(); n != 1 {
		t.Errorf("100 callers opened %d connections", n)
	}
	if left := server.Client(t).PTTL(t.Context(), "key7").Val(); left <= 0 || left > time.Minute {
		t.Errorf("the key lives for %v, want a minute", left)
	}
}

// What a command does is done once, although its answer is lost, on one server and in a cluster, where every node has a
// pipeline.
func TestNothingIsSentAgainAfterABrokenConnection(t *testing.T) {
	for _, topology := range []string{"single", "cluster:3"} {
		t.Run(topology, func(t *testing.T) {
			top, path := redistest.StartTopology(t, topology), new(network.Path)
			client := open(t, on(t, path, eager(t, top.Nodes(t)[0])))
			var wg sync.WaitGroup
			for i := range 60 {
				wg.Go(func() { // on all nodes
					key := fmt.Sprintf("{%d}key", i)
					if taken, err := client.SetNX(t.Context(), key, i, time.Minute).Result(); err != nil || !taken {
						t.Errorf("SET NX %s: %v, %v", key, taken, err)
					}
					n, err := client.Eval(t.Context(), "return redis.call('DEL', KEYS[1])", []string{key}).Int()
					if err != nil || n != 1 {
						t.Errorf("EVAL %s: %v, %v", key, n, err)
					}
				})
			}
			wg.Wait()
			sent, lose := 0, func() {
				lost := loses(path)
				if err := client.SetNX(t.Context(), "key", 1, time.Minute).Err(); !indeterminate.MayHaveRun(err) {
					t.Errorf("a SET whose answer was lost ended with %v", err)
				}
				<-lost.Caught
			}
			for _, direct := range top.Clients(t) { // counted on all of them
				inner := lose
				lose = func() { sent += locktest.Calls(t, direct, inner)["set"] }
			}
			lose()
			if sent != 1 {
				t.Errorf("%d SETs were carried out", sent)
			}
			if taken, err := client.SetNX(t.Context(), "key", 2, time.Minute).Result(); err != nil || taken {
				t.Errorf("afterwards SET NX is %v, %v; the key was set", taken, err)
			}
		})
	}
}

// A replica refuses a script in its middle; what came before in it is not done again.
func TestNothingIsSentAgainAfterARefusal(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	client := open(t, eager(t, server.Node(t)))
	if err := outside.SlaveOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	ran := locktest.Calls(t, outside, func() {
		const write = "redis.call('PUBLISH', 'c', 'm') return redis.call('SET', KEYS[1], 1)"
		err := client.Eval(t.Context(), write, []string{"key"}).Err()
		if !redis.HasErrorPrefix(err, "READONLY") && !redis.HasErrorPrefix(err, "MASTERDOWN") {
			t.Errorf("a replica answered %v", err)
		}
	})
	if ran["eval"] != 1 {
		t.Errorf("Redis ran %v, want one EVAL", ran)
	}
}

// A caller whose time is up returns while Redis stands still. Neither its command nor
// another's is lost, nor is the later command of the same caller overtaken.
func TestACancelledCallerLosesNobodysCommand(t *testing.T) {
	server := redistest.Start(t)
	short, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := open(t, onceSent(t, server.Node(t), "short", cancel))
	if err := client.SetNX(t.Context(), "before", 1, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	patient := make(chan error, 1)
	go func() { patient <- client.SetNX(t.Context(), "patient", 1, time.Minute).Err() }()
	err := client.SetNX(short, "short", 1, time.Minute).Err()
	if !errors.Is(err, context.Canceled) || !indeterminate.MayHaveRun(err) {
		t.Errorf("the caller's time was up: %v; want its context's error, and that the SET may have run", err)
	}
	deleted := make(chan error, 1)
	go func() {
		n, err := client.Eval(t.Context(), "return redis.call('DEL', KEYS[1])", []string{"short"}).Int()
		if err == nil && n != 1 {
			err = errors.New("it came before the SET")
		}
		deleted <- err
	}()
	select {
	case err := <-patient:
		t.Errorf("a stopped Redis has answered: %v", err)
	default:
	}
	server.Resume()
	if err := <-patient; err != nil {
		t.Errorf("the other caller's SET: %v", err)
	}
	if err := <-deleted; err != nil {
		t.Errorf("the DEL after it: %v", err)
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.Node(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ran := locktest.Calls(t, server.Client(t), func() {
		err := client.SetNX(ended, "key", 1, time.Minute).Err()
		if err != context.Canceled { //nolint:errorlint // so that nothing is taken back
			t.Errorf("it ended with %v", err)
		}
		if err := client.SetNX(t.Context(), "another", 1, time.Minute).Err(); err != nil {
			t.Error(err)
		}
	})
	if ran["set"] != 1 {
		t.Errorf("Redis ran %v, want the SET of the second caller alone", ran)
	}
}

// Script.Run falls back to EVAL where Redis does not know the script.
func TestUnknownScript(t *testing.T) {
	client := open(t, redistest.Start(t).Node(t))
	script := redis.NewScript("return #KEYS + #ARGV")
	for range 2 {
		if n, err := script.Run(t.Context(), client, []string{"key"}, "a", 2).Int(); err != nil || n != 3 {
			t.Errorf("the script returned %d, %v", n, err)
		}
	}
	err := client.EvalSha(t.Context(), "0123456789012345678901234567890123456789", nil).Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("an unknown script: %v", err)
	}
}

// provider is one whose credentials change.
type provider struct{ listener auth.CredentialsListener }

func (p *provider) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.listener = l
	return auth.NewBasicCredentials("default", ""), func() error { return nil }, nil
}

// A connection is replaced when its user's credentials change, after the commands that are on it.
func TestCredentialsThatChange(t *testing.T) {
	server, provider, dials := redistest.Start(t), new(provider), new(atomic.Int64)
	own := redis.NewClient(&redis.Options{
		Addr: server.Addr, StreamingCredentialsProvider: provider,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})
	t.Cleanup(func() { _ = own.Close() })
	client := open(t, goredis.Node{Client: own})
	for range 3 {
		for range 2 {
			if err := client.Do(t.Context(), "ping").Err(); err != nil {
				t.Fatal(err)
			}
		}
		provider.listener.OnNext(nil)
	}
	if n := dials.Load(); n != 3 {
		t.Errorf("it dialled %d times, want once for each credentials", n)
	}
}

// Leases are released after Close, by the node's own client.
func TestAfterClose(t *testing.T) {
	node, dials := countDials(t, redistest.Start(t))
	client := open(t, node)
	var wg sync.WaitGroup
	for i := range 50 { // some before Close, some during it, some after it
		wg.Go(func() {
			taken, err := client.SetNX(t.Context(), fmt.Sprint("key", i), 1, time.Minute).Result()
			if err != nil || !taken {
				t.Errorf("SET NX: %v, %v", taken, err)
			}
		})
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	before := dials.Load()
	if err := client.SetNX(t.Context(), "after", 1, time.Minute).Err(); err != nil {
		t.Error(err)
	}
	if err := node.Client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the node's own client was closed: %v", err)
	}
	now, err := client.SendTimed(t.Context(), redis.NewCmd(t.Context(), "get", "after"))
	if took := time.Since(time.UnixMicro(now)); err != nil || took < 0 || took > time.Minute {
		t.Errorf("the time is %v ago, %v", took, err)
	}
	key, arg := "after", "1"
	hash := node.Client.ScriptLoad(t.Context(), "return {KEYS[1] .. ARGV[1]}").Val()
	conn, err := pipeline.Dial(node, time.Minute, hash)
	if err != nil || conn.Close() != nil {
		t.Fatal(err)
	}
	if reply, err := conn.Run(t.Context(), &key, &arg); reply != any("after1") || err != nil {
		t.Errorf("a run returned %v, %v", reply, err)
	}
	if dials.Load() > before+1 {
		t.Errorf("after Close it opened %d connections", dials.Load()-before)
	}
	if err := client.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// countDials returns a node, and counts how often its client, and whatever else uses its
// options, dials.
func countDials(t *testing.T, server *redistest.Server) (goredis.Node, *atomic.Int64) {
	t.Helper()
	dials := new(atomic.Int64)
	return with(t, server.Node(t), func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	}), dials
}
