package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// trouble makes some until ctx ends.
func (c *chaos) trouble(ctx context.Context) {
	outside := c.server.Client(c.T)
	troubles := []struct {
		name string
		make func()
	}{
		{"all subscribers' connections cut", func() { c.cut(outside, func(string) bool { return true }) }},
		{"some connections cut", func() { c.cut(outside, func(string) bool { return rand.IntN(3) == 0 }) }},
		{"scripts flushed", func() { _ = outside.ScriptFlush(ctx).Err() }},
		{"short pause", func() { c.pause(rand.N(50 * time.Millisecond)) }},
		{"pause", func() { c.pause(rand.N(2 * ttl)) }},
		{"writes refused", func() { c.refuse(outside, rand.N(ttl)) }},
		{"restart", c.restart},
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rand.N(300 * time.Millisecond)):
		}
		t := troubles[rand.IntN(len(troubles))]
		t.make()
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

// cut kills connections, but not its own.
func (c *chaos) cut(outside *redis.Client, which func(id string) bool) {
	ctx := context.Background()
	for line := range strings.Lines(outside.ClientList(ctx).Val()) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		if strings.Contains(line, "sub=1") && which(id) {
			_ = outside.ClientKillByFilter(ctx, "ID", id).Err()
		}
	}
}

func (c *chaos) pause(length time.Duration) {
	from := time.Since(c.began)
	c.server.Pause()
	time.Sleep(length)
	c.server.Resume()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = append(c.down, outage{from, time.Since(c.began)})
}

// refuse has Redis take no writes, as without enough replicas.
func (c *chaos) refuse(outside *redis.Client, length time.Duration) {
	ctx := context.Background()
	from := time.Since(c.began)
	_ = outside.ConfigSet(ctx, "min-replicas-to-write", "1").Err()
	time.Sleep(length)
	if err := outside.ConfigSet(ctx, "min-replicas-to-write", "0").Err(); err != nil {
		c.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = append(c.down, outage{from, time.Since(c.began)})
}

// restart has Redis lose its data.
func (c *chaos) restart() {
	from := time.Since(c.began)
	c.server.Kill()
	time.Sleep(rand.N(100 * time.Millisecond))
	c.server.Restart(c.T)
	c.mu.Lock()
	defer c.mu.Unlock()
	o := outage{from, time.Since(c.began)}
	c.down = append(c.down, o)
	c.gone = append(c.gone, o)
}
