package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// trouble makes some until ctx ends.
func (c *chaos) trouble(ctx context.Context) {
	defer c.later.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rand.N(300 * time.Millisecond)):
		}
		t := c.troubles[rand.IntN(len(c.troubles))]
		t.make(c)
		c.count(t.name)
	}
}

// watch notes when the machine stood still, which is no lock's fault.
func (c *chaos) watch(ctx context.Context) {
	for ctx.Err() == nil {
		from := time.Since(c.began)
		time.Sleep(10 * time.Millisecond)
		if to := time.Since(c.began); to-from > 100*time.Millisecond {
			c.mu.Lock()
			c.down = append(c.down, outage{from, to})
			c.mu.Unlock()
			c.count("standstill of the machine")
		}
	}
}

func cutAll(server *redis.Client) trouble {
	return trouble{"all connections cut", func(c *chaos) { c.cut(server, func(string) bool { return true }) }}
}

func cutSome(server *redis.Client) trouble {
	return trouble{"some connections cut", func(c *chaos) { c.cut(server, func(string) bool { return rand.IntN(3) == 0 }) }}
}

func scriptsFlushed(server *redis.Client) trouble {
	return trouble{"scripts flushed", func(*chaos) { _ = server.ScriptFlush(context.Background()).Err() }}
}

// refused has Redis take no writes, as without enough replicas.
func refused(server *redis.Client) trouble {
	return trouble{"writes refused", func(c *chaos) { c.configured(server, "min-replicas-to-write", "9", "0", rand.N(ttl)) }}
}

// cut kills connections, but neither its own nor a replica's.
func (c *chaos) cut(server *redis.Client, which func(id string) bool) {
	ctx := context.Background()
	for line := range strings.Lines(server.ClientList(ctx).Val()) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		if strings.Contains(line, "cmd=client|list") || strings.Contains(line, "flags=S") || strings.Contains(line, "flags=M") || strings.Contains(line, "flags=O") {
			continue
		}
		if which(id) {
			_ = server.ClientKillByFilter(ctx, "ID", id).Err()
		}
	}
}

// configured has a setting have another value for a while, in which Redis does not serve.
func (c *chaos) configured(server *redis.Client, name, value, usual string, length time.Duration) {
	c.during(&c.down, func() {
		c.must(server, "CONFIG", "SET", name, value)
		time.Sleep(length)
		c.must(server, "CONFIG", "SET", name, usual)
	})
}

func (c *chaos) must(server *redis.Client, args ...any) {
	if err := server.Do(context.Background(), args...).Err(); err != nil {
		c.Errorf("%v: %v", args, err)
	}
}

func (c *chaos) pause(server *redistest.Server, length time.Duration) {
	c.during(&c.down, func() {
		server.Pause()
		time.Sleep(length)
		server.Resume()
	})
}

// restart has Redis lose its data.
func (c *chaos) restart(server *redistest.Server) {
	c.during(&c.gone, func() {
		c.during(&c.down, func() {
			server.Kill()
			time.Sleep(rand.N(100 * time.Millisecond))
			server.Restart(c.T)
		})
	})
}
