package audit

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// provider hands out credentials, and new ones to all connections that it serves.
type provider struct {
	mu        sync.Mutex
	now       auth.Credentials
	listeners map[auth.CredentialsListener]bool
	asked     int
}

func (p *provider) Subscribe(listener auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	p.listeners[listener] = true
	return p.now, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, listener)
		return nil
	}, nil
}

// rotate has new credentials be used, on present connections too.
func (p *provider) rotate(now auth.Credentials) {
	p.mu.Lock()
	p.now = now
	var all []auth.CredentialsListener
	for listener := range p.listeners {
		all = append(all, listener)
	}
	p.mu.Unlock()
	for _, listener := range all {
		listener.OnNext(now)
	}
}

func (p *provider) count() int { p.mu.Lock(); defer p.mu.Unlock(); return p.asked }

// Every connection of a lock asks the client's StreamingCredentialsProvider for its
// credentials, and is set up by the client's OnConnect.
func TestClientOptionsAreUsed(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		const ours = "ours"
		server := redistest.Start(t)
		outside := server.Client(t)
		user := func(rules ...any) {
			t.Helper()
			if err := outside.Do(t.Context(), append([]any{"ACL", "SETUSER", "app"}, rules...)...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		user("on", ">first", "allkeys", "allchannels", "allcommands")
		if err := outside.Do(t.Context(), "ACL", "SETUSER", "default", "-@all", "+client", "+acl", "+ping", "+info", "+hello").Err(); err != nil {
			t.Fatal(err)
		}
		var prepared atomic.Int64
		secrets := &provider{now: auth.NewBasicCredentials("app", "first"), listeners: map[auth.CredentialsListener]bool{}}
		process := func() strategies.Locker {
			return openBy(t, name, &redis.UniversalOptions{
				Addrs: []string{server.Addr}, StreamingCredentialsProvider: secrets,
				OnConnect: func(ctx context.Context, cn *redis.Conn) error {
					prepared.Add(1)
					return cn.ClientSetName(ctx, ours).Err()
				},
			}, time.Hour)
		}
		a, b := process(), process()
		pass := func() {
			t.Helper()
			book := &book{t: t}
			lease := acquire(t, a)
			book.enter("a", lease)
			w := book.wait(0, b)
			book.leave(lease)
			if err := release(t, lease); err != nil {
				t.Errorf("the release returned %v", err)
			}
			w.all.Wait()
		}
		pass()
		connections := 0
		for line := range strings.Lines(outside.ClientList(t.Context()).Val()) {
			if strings.Contains(line, "cmd=client|list") {
				continue // the test's own
			}
			connections++
			if !strings.Contains(line, " name="+ours+" ") || !strings.Contains(line, " user=app ") {
				t.Errorf("a connection that the client's options did not set up: %s", line)
			}
		}
		if n := prepared.Load(); n < int64(connections) || connections < 2 {
			t.Errorf("OnConnect was called %d times for %d connections of two processes", n, connections)
		}
		if n := secrets.count(); n < connections {
			t.Errorf("%d connections of two processes asked %d times for their credentials", connections, n)
		}

		user(">second")
		secrets.rotate(auth.NewBasicCredentials("app", "second"))
		user("<first")
		pass()
		disconnect(t, outside)
		pass()
	})
}
