package audit

import (
	"bufio"
	"context"
	"net"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// refusals are what a server may refuse writes for, and how that ends.
var refusals = map[string]struct {
	args           []string
	begin, relieve func(t *testing.T, server *redis.Client)
}{
	"NOREPLICAS": {
		begin:   func(t *testing.T, server *redis.Client) { set(t, server, "min-replicas-to-write", "1") },
		relieve: func(t *testing.T, server *redis.Client) { set(t, server, "min-replicas-to-write", "0") },
	},
	"MISCONF": {
		args: []string{"--save", "3600 1"},
		begin: func(t *testing.T, server *redis.Client) {
			dir := server.ConfigGet(t.Context(), "dir").Val()["dir"]
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			_ = server.BgSave(t.Context()).Err()
			refused(t, server)
		},
		relieve: func(t *testing.T, server *redis.Client) { set(t, server, "stop-writes-on-bgsave-error", "no") },
	},
	"OOM": {
		begin: func(t *testing.T, server *redis.Client) {
			set(t, server, "maxmemory", "1")
			refused(t, server)
		},
		relieve: func(t *testing.T, server *redis.Client) { set(t, server, "maxmemory", "0") },
	},
}

func set(t *testing.T, server *redis.Client, name, value string) {
	t.Helper()
	if err := server.ConfigSet(context.Background(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, server *redis.Client) {
	t.Helper()
	poll.Until(t, "writes are refused", func() bool { return server.Set(t.Context(), "refused", 1, 0).Err() != nil })
}

// A server that refuses writes tells nobody that the lock is theirs; all are served when
// it takes them again.
func TestRefusedWritesMakeNoOwner(t *testing.T) {
	t.Parallel()
	for reason, refusal := range refusals {
		t.Run(reason, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t, refusal.args...)
				outside := server.Client(t)
				const ttl = 4 * time.Second
				holder := open(t, name, server.Addr, nil, ttl)
				var lockers []strategies.Locker
				for range 3 {
					lockers = append(lockers, open(t, name, server.Addr, nil, ttl))
				}
				b := &book{t: t}
				lease := acquire(t, holder)
				b.enter("the holder", lease)
				w := b.wait(600*time.Millisecond, lockers...)
				refusal.begin(t, outside)
				b.leave(lease)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				err := lease.Release(ctx)
				time.Sleep(300 * time.Millisecond)
				b.mu.Lock()
				if err != nil && b.served > 1 {
					t.Errorf("%d were told that the lock is theirs, and the release was refused: %v", b.served-1, err)
				}
				b.mu.Unlock()
				refusal.relieve(t, outside)
				_ = release(t, lease) // it may have run out
				w.all.Wait()
			})
		})
	}
}

// published is a message as MONITOR shows it.
var published = regexp.MustCompile(`(?i)"(publish|spublish)" "([^"]*)" "([^"]*)"`)

// watcher is who hears of every command that Redis carries out, one a line.
type watcher struct {
	*bufio.Scanner
	close func()
}

func monitor(t *testing.T, addr string) watcher {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = c.Write([]byte("MONITOR\r\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	w := watcher{bufio.NewScanner(c), func() { _ = c.Close() }}
	t.Cleanup(w.close)
	if !w.Scan() || w.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", w.Text(), w.Err())
	}
	return w
}

// A grant that is told twice does not take the lock from its holder.
func TestGrantToldTwice(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		outside := server.Client(t)
		const ttl = 10 * time.Second
		holder := open(t, name, server.Addr, nil, ttl)
		var lockers []strategies.Locker
		for range 3 {
			lockers = append(lockers, open(t, name, server.Addr, nil, ttl))
		}
		b := &book{t: t}
		lease := acquire(t, holder)
		b.enter("the holder", lease)
		w := b.wait(200*time.Millisecond, lockers...)
		everything := monitor(t, server.Addr)
		var twice atomic.Int64
		go func() {
			told := map[string]bool{}
			for everything.Scan() { // until it is closed
				if m := published.FindStringSubmatch(everything.Text()); m != nil && !told[m[0]] {
					told[m[0]] = true
					_ = outside.Do(context.Background(), m[1], m[2], m[3]).Err()
					twice.Add(1)
				}
			}
		}()
		b.leave(lease)
		if err := release(t, lease); err != nil {
			t.Errorf("the release returned %v", err)
		}
		w.all.Wait()
		poll.Until(t, "a message was told twice", func() bool { return twice.Load() > 0 })
	})
}
