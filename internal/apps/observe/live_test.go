package observe

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

func at(url string) servers.Options { return servers.Options{Address: url, RunID: store.NewRunID()} }

// contendForLock lets clients contend for one lock of the strategy spin until each client has had the given number of
// leases. It returns the total number of leases.
func contendForLock(t *testing.T, server *redistest.Server, clients, leases int) int {
	t.Helper()
	v, err := strategies.NewVariant("spin", nil)
	if err != nil {
		t.Fatal(err)
	}
	locker, err := goredis.Open(v, goredis.Config{
		Nodes: []goredis.Node{server.Node(t)}, Prefix: "service:", TTL: long, Callers: clients,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	if p, ok := strategies.As[strategies.Preparer](locker); ok {
		if err := p.Prepare(t.Context(), []string{"order:7"}); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range leases {
				lease, err := locker.Acquire(t.Context(), "order:7")
				if err == nil {
					time.Sleep(2 * time.Millisecond) // the hold
					err = lease.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return clients * leases
}

// The figures of a live capture must match the leases of contending clients. If the capture is interrupted, Watch must
// return the figures up to then.
func TestLiveCaptureMatchesLeases(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	begun, leases := make(chan struct{}), 0
	var busy sync.WaitGroup
	busy.Go(func() {
		<-begun
		contendForLock(t, server, 1, 1) // a release proves that the lock is free
		leases = 1 + contendForLock(t, server, 6, 30)
		time.Sleep(300 * time.Millisecond) // time for the rest of the stream to arrive
		interrupt()
	})
	before := calls(t, client)
	d, err := Watch(ctx, at(server.URL()), Live{For: LongestFor, Begun: func() { close(begun) }}, Options{Top: 5})
	busy.Wait()
	if err != nil || !d.Interrupted || d.Cut || len(d.Locks) != 1 {
		t.Fatalf("%v, %+v", err, d)
	}
	after := calls(t, client)
	l := d.Locks[0]
	tries, releases := after["set"]-before["set"], after["evalsha"]-before["evalsha"]+after["eval"]-before["eval"]
	if l.Acquisitions != int64(leases) || l.Tries != tries || l.Releases != releases || releases != int64(leases) {
		t.Errorf("observed %+v, there were %d leases, %d tries and %d releases", l.Counts, leases, tries, releases)
	}
	if faults, _ := faultsOf(d); len(faults) > 0 {
		t.Errorf("found %v", faults)
	}
	// The commands that clients send when they connect belong to no lock. More than 40 would mean that the capture's own
	// commands were counted.
	if own := d.Capture.Commands - l.Commands; own > 40 {
		t.Errorf("%d commands are of no lock: are those of the reader left out?", own)
	}
	t.Logf("%d of %d leases, %d of %d tries, %d of %d releases, %d commands of which %d are of the lock",
		l.Acquisitions, leases, l.Tries, tries, l.Releases, releases, d.Capture.Commands, l.Commands)
}

func calls(t *testing.T, client redis.UniversalClient) map[string]int64 {
	t.Helper()
	text, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	return replies.ParseInfo(text).Calls()
}

// A capture must end at its time limit, even on an idle server, and at its limit for the number of commands.
func TestLiveCaptureEndsAtLimits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "se/cret")
	url := strings.Replace(server.URL(), "//", "//:se%2Fcret@", 1)
	d, err := Watch(t.Context(), at(url), Live{For: 300 * time.Millisecond}, Options{Top: 5})
	if err != nil || d.Interrupted || d.Cut || d.Stopped != "" || d.Capture.Commands != 0 || d.Capture.Seconds < 0.1 {
		t.Errorf("%v, %+v", err, d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var busy sync.WaitGroup
	client := redistest.Dial(t, url)
	d, err = Watch(t.Context(), at(url), Live{For: LongestFor, Lines: 50, Begun: func() {
		busy.Go(func() {
			for ctx.Err() == nil && client.Ping(ctx).Err() == nil {
			}
		})
	}}, Options{Top: 5})
	cancel()
	busy.Wait()
	if err != nil || d.Capture.Commands != 50 || d.Cut || !strings.Contains(d.Stopped, "50 commands") {
		t.Errorf("%v, %+v", err, d)
	}
}

// Watch must refuse an untrusted certificate, and must accept a trusted one together with a password from the options.
func TestLiveCaptureOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := redistest.Certificate(t)
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--requirepass", "secret")
	how := at("rediss://127.0.0.1:" + port)
	live := Live{For: 150 * time.Millisecond}
	if _, err := Watch(t.Context(), how, live, Options{Top: 1}); err == nil {
		t.Error("a certificate that is not trusted is taken")
	}
	how.CAFile, how.CertFile, how.KeyFile, how.Password = cert, cert, key, "secret"
	if d, err := Watch(t.Context(), how, live, Options{Top: 1}); err != nil || d.Cut || d.Capture.Lines == 0 {
		t.Errorf("%v, %+v", err, d)
	}
}

// If lockbench reads more slowly than the server sends, lockbench must end MONITOR before the server's memory is full.
func TestSlowReaderEndsMonitor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	begun, flooded := make(chan struct{}), make(chan struct{})
	var busy sync.WaitGroup
	defer busy.Wait()
	var most int64
	busy.Go(func() {
		defer close(flooded)
		<-begun
		value := strings.Repeat("x", 50_000)
		for range 600 { // 30 MB, more than the buffers of the sockets
			client.Set(t.Context(), "page", value, 0)
		}
	})
	live := Live{For: LongestFor, held: 1 << 20, Begun: func() { close(begun) }}
	live.reading = func() { <-flooded }
	d, err := Watch(t.Context(), at(server.URL()), live, Options{Top: 5})
	if err != nil || !d.Cut || !strings.Contains(d.Stopped, "above the limit of 1024 KB: the server sends faster") {
		t.Fatalf("%v, %+v", err, d)
	}
	list, err := client.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for c := range replies.Clients(list) {
		if c["cmd"] == "monitor" {
			t.Errorf("MONITOR goes on: %v", c)
		}
		if n := replies.Info(c).Integer("omem"); n != nil {
			most = max(most, *n)
		}
	}
	if most > 1<<20 {
		t.Errorf("the server still holds %d bytes", most)
	}
	t.Log(d.Stopped)
}

// The test kills the server during a capture. The document must contain what was captured before, and must say that the
// server stopped.
func TestServerEndsDuringCapture(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d, err := Watch(t.Context(), at(server.URL()), Live{For: LongestFor, Begun: server.Kill}, Options{Top: 5})
	if err != nil || !d.Cut || d.Interrupted {
		t.Errorf("%v, %+v", err, d)
	}
	if _, err = Watch(t.Context(), at(server.URL()), Live{For: time.Second}, Options{Top: 5}); !errors.Is(err,
		servers.ErrUnreachable) {
		t.Errorf("a server that is away: %v", err)
	}
}

// The rights in docs/ACL.md must suffice for a live capture. If a user lacks rights, the error must list all of them.
func TestObserveRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	rights := servers.MonitorRights()
	page, err := os.ReadFile("../../../docs/ACL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range rights {
		if !strings.Contains(string(page), right) {
			t.Errorf("docs/ACL.md lacks %s", right)
		}
	}
	user := func(t *testing.T, name string, rules ...string) string {
		t.Helper()
		words := []any{"acl", "setuser", name, "reset", "on", ">pw"}
		for _, rule := range rules {
			words = append(words, rule)
		}
		if err := client.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
		return strings.Replace(server.URL(), "//", "//"+name+":pw@", 1)
	}
	live := Live{For: 150 * time.Millisecond}
	if d, err := Watch(t.Context(), at(user(t, "able", rights...)), live, Options{Top: 1}); err != nil || d.Cut {
		t.Errorf("with %v: %v, %+v", rights, err, d)
	}
	_, err = Watch(t.Context(), at(user(t, "none")), live, Options{Top: 1})
	all := "ACL SETUSER none " + strings.Join(rights, " ")
	if !errors.Is(err, servers.ErrConfig) || !strings.Contains(err.Error(), all) {
		t.Errorf("without rights: %v", err)
	}
	for i, right := range rights {
		without := append(append([]string{}, rights[:i]...), rights[i+1:]...)
		_, err := Watch(t.Context(), at(user(t, "less", without...)), live, Options{Top: 1})
		if err == nil || !strings.HasSuffix(err.Error(), "ACL SETUSER less "+right) {
			t.Errorf("without %s: %v", right, err)
		}
	}
	poll.Until(t, "no MONITOR goes on", func() bool { // the server closes connections with a delay
		list, err := client.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return !strings.Contains(list, "cmd=monitor")
	})
}
