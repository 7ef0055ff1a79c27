package audit

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
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
	trial.Eventually(t, "writes are refused", func() bool { return server.Set(t.Context(), "refused", 1, 0).Err() != nil })
}

// A server that refuses writes tells nobody that the lock is theirs; all are served when
// it takes them again.
func TestRefusedWritesMakeNoOwner(t *testing.T) {
	t.Parallel()
	for reason, refusal := range refusals {
		if reason == "OOM" {
			continue // which does not keep a lock from being released
		}
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
				if err := lease.Release(ctx); err == nil {
					t.Error("a release that was refused returned no error")
				}
				time.Sleep(300 * time.Millisecond)
				b.mu.Lock()
				if b.served > 1 {
					t.Errorf("%d were told that the lock is theirs while writes were refused", b.served-1)
				}
				b.mu.Unlock()
				refusal.relieve(t, outside)
				_ = release(t, lease) // it may have run out
				w.all.Wait()
			})
		})
	}
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
		channels, err := outside.PubSubShardChannels(t.Context(), "*").Result()
		if err != nil || len(channels) < len(lockers) {
			t.Fatalf("the processes listen on %v, %v", channels, err)
		}
		everything := outside.SSubscribe(t.Context(), channels...)
		for range channels {
			if _, err := everything.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		again := make(chan int)
		go func() {
			told := map[string]bool{}
			for m := range everything.Channel() { // until it is closed
				if !told[m.Payload] {
					told[m.Payload] = true
					_ = outside.SPublish(context.Background(), m.Channel, m.Payload).Err()
				}
			}
			again <- len(told)
		}()
		b.leave(lease)
		if err := release(t, lease); err != nil {
			t.Errorf("the release returned %v", err)
		}
		w.all.Wait()
		_ = everything.Close()
		if n := <-again; n < len(lockers) {
			t.Errorf("%d messages were told twice", n)
		}
	})
}
