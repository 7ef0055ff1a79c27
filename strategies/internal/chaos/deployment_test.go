package chaos

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// deployment is a Redis that the clients use, and what can go wrong there.
type deployment struct {
	name     string
	options  func(process int) *redis.UniversalOptions // and go-redis's defaults
	troubles []trouble
}

// trouble is a fault that is made, and mended.
type trouble struct {
	name string
	make func(c *chaos)
}

// ways are those of the processes to Redis.
type ways [processes]trial.Path

// troubles are those of the network.
func (w *ways) troubles() []trouble {
	return []trouble{
		{"packets late", func(c *chaos) { w.delay(c, rand.N(20*time.Millisecond), rand.N(2*ttl)) }},
		{"packets very late", func(c *chaos) { w.delay(c, rand.N(ttl), rand.N(4*ttl)) }},
		{"answers lost", func(*chaos) {
			p := &w[rand.IntN(processes)]
			p.Mute()
			time.Sleep(rand.N(20 * time.Millisecond))
			p.HangUp()
		}},
	}
}

// delay keeps back what a process writes for so long, then breaks its connections. What
// was kept back arrives some time after that.
func (w *ways) delay(c *chaos, kept, late time.Duration) {
	p := &w[rand.IntN(processes)]
	p.Keep()
	time.Sleep(kept)
	packets := p.Snap()
	c.later.Go(func() {
		time.Sleep(late)
		_ = packets.Deliver() // Redis may have restarted
	})
}

// single is one Redis whose clock can be set.
func single(t *testing.T) *deployment {
	t.Helper()
	server, clock := trial.StartSettable(t)
	outside := server.Client(t)
	w := new(ways)
	var ahead time.Duration
	return &deployment{
		name: "one server",
		options: func(process int) *redis.UniversalOptions {
			return &redis.UniversalOptions{Addrs: []string{server.Addr}, Dialer: w[process].Dial}
		},
		troubles: append([]trouble{
			cutAll(outside), cutSome(outside), scriptsFlushed(outside), refused(outside),
			{"short pause", func(c *chaos) { c.pause(server, rand.N(50*time.Millisecond)) }},
			{"pause", func(c *chaos) { c.pause(server, rand.N(2*ttl)) }},
			{"stall", func(c *chaos) { c.pause(server, 500*time.Millisecond+rand.N(1500*time.Millisecond)) }},
			{"restart without data", func(c *chaos) { c.restart(server) }},
			{"no memory", func(c *chaos) { c.configured(outside, "maxmemory", "1", "0", rand.N(ttl)) }},
			{"replica for a while", func(c *chaos) {
				c.during(&c.down, func() {
					c.must(outside, "REPLICAOF", "127.0.0.1", "1")
					time.Sleep(rand.N(ttl))
					c.must(outside, "REPLICAOF", "NO", "ONE")
				})
			}},
			{"clock set forward", func(c *chaos) {
				ahead += rand.N(4 * ttl)
				c.during(&c.gone, func() { clock.Set(ahead); c.must(outside, "PING") })
			}},
			{"clock set back", func(c *chaos) { // Redis keeps what a dead holder had for longer by that
				step := rand.N(2 * ttl)
				ahead -= step
				c.during(&c.back, func() { clock.Set(ahead); c.must(outside, "PING") })
				c.mu.Lock()
				defer c.mu.Unlock()
				now := time.Since(c.began)
				c.down = append(c.down, outage{now, now + step})
			}},
		}, w.troubles()...),
	}
}

// pair is a primary and a replica which change their parts, with clients that follow.
func pair(t *testing.T) *deployment {
	t.Helper()
	p := trial.StartPair(t)
	w := new(ways)
	primary := func(of func(*redis.Client) trouble) trouble { // whichever it is then
		return trouble{of(nil).name, func(c *chaos) { of(p.Primary()).make(c) }}
	}
	return &deployment{
		name: "primary and replica",
		options: func(process int) *redis.UniversalOptions {
			return &redis.UniversalOptions{
				Addrs: []string{p.Addr(0)},
				Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return w[process].Dial(ctx, network, p.Primary().Options().Addr)
				},
			}
		},
		troubles: append([]trouble{
			{"failover", func(c *chaos) { c.during(&c.down, func() { p.FailOver("FAILOVER"); p.Together() }) }},
			{"failover with connections cut", func(c *chaos) {
				c.during(&c.down, func() { p.FailOver("FAILOVER"); p.Together() })
				c.cut(p.Nodes[0], func(string) bool { return true })
				c.cut(p.Nodes[1], func(string) bool { return true })
			}},
			primary(cutAll), primary(cutSome), primary(scriptsFlushed), primary(refused),
		}, w.troubles()...),
	}
}

// cluster is one of three primaries whose slots move.
func cluster(t *testing.T) *deployment {
	t.Helper()
	nodes := trial.StartCluster(t)
	w := new(ways)
	slots := []int64{nodes.Nodes[0].ClusterKeySlot(t.Context(), "{0}").Val(), nodes.Nodes[0].ClusterKeySlot(t.Context(), "{1}").Val()}
	troubles := append([]trouble{
		{"slot moved", func(c *chaos) { c.during(&c.down, func() { nodes.Migrate(slots[rand.IntN(keys)]).Finish() }) }},
		{"slot moved slowly", func(c *chaos) {
			c.during(&c.down, func() {
				m := nodes.Migrate(slots[rand.IntN(keys)])
				for range 3 {
					time.Sleep(rand.N(100 * time.Millisecond))
					m.Carry(1)
				}
				m.Finish()
			})
		}},
	}, w.troubles()...)
	for _, node := range nodes.Nodes {
		troubles = append(troubles, cutAll(node), cutSome(node), scriptsFlushed(node))
	}
	return &deployment{
		name: "cluster",
		options: func(process int) *redis.UniversalOptions {
			options := nodes.Options()
			options.Dialer = w[process].Dial
			return &options
		},
		troubles: troubles,
	}
}
