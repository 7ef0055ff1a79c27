package handoff_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// deployment is a Redis deployment under test, with the options of its clients and the faults that can be injected.
type deployment struct {
	name     string
	options  func(process int) *redis.UniversalOptions // and go-redis's defaults
	troubles []trouble
}

// trouble is a fault. The function make injects the fault, waits, and removes it.
type trouble struct {
	name string
	make func(c *chaos)
}

// ways contains, for each process, its network path to Redis. The test injects faults on these paths.
type ways [chaosProcesses]netfault.Path

// troubles returns the network faults. Each affects the connections of one random process.
func (w *ways) troubles() []trouble {
	return []trouble{
		{"packets late", func(c *chaos) { w.delay(c, rand.N(20*time.Millisecond), rand.N(2*chaosTTL)) }},
		{"packets very late", func(c *chaos) { w.delay(c, rand.N(chaosTTL), rand.N(4*chaosTTL)) }},
		{"answers lost", func(*chaos) {
			p := &w[rand.IntN(chaosProcesses)]
			p.Mute()
			time.Sleep(rand.N(20 * time.Millisecond))
			p.HangUp()
		}},
	}
}

// delay holds back the data that a random process writes. After the duration kept, it breaks the connections of this
// process. After a further duration, late, the data reaches Redis.
func (w *ways) delay(c *chaos, kept, late time.Duration) {
	p := &w[rand.IntN(chaosProcesses)]
	p.Keep()
	time.Sleep(kept)
	packets := p.Snap()
	c.later.Go(func() {
		time.Sleep(late)
		_ = packets.Deliver() // Redis may have restarted
	})
}

// settable returns a deployment with one Redis server whose clock the test can set.
func settable(t *testing.T) *deployment {
	t.Helper()
	server, clock := redistest.StartSettable(t)
	outside := lookAt(t, server)
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
			{"pause", func(c *chaos) { c.pause(server, rand.N(2*chaosTTL)) }},
			{"stall", func(c *chaos) { c.pause(server, 500*time.Millisecond+rand.N(1500*time.Millisecond)) }},
			{"restart without data", func(c *chaos) { c.restart(server) }},
			{"no memory", func(c *chaos) { c.configured(outside, "maxmemory", "1", "0", rand.N(chaosTTL)) }},
			{"replica for a while", func(c *chaos) {
				c.during(&c.down, func() {
					c.must(outside, "REPLICAOF", "127.0.0.1", "1")
					time.Sleep(rand.N(chaosTTL))
					c.must(outside, "REPLICAOF", "NO", "ONE")
				})
			}},
			{"clock set forward", func(c *chaos) {
				ahead += rand.N(4 * chaosTTL)
				c.during(&c.gone, func() { clock.Set(ahead); c.must(outside, "PING") })
			}},
			{"clock set back", func(c *chaos) { // this makes Redis keep a dead holder's lock longer
				step := rand.N(2 * chaosTTL)
				ahead -= step
				c.during(&c.back, func() { clock.Set(ahead); c.must(outside, "PING") })
				c.mu.Lock()
				defer c.mu.Unlock()
				now := time.Since(c.began)
				c.down = append(c.down, span{now, now + step})
			}},
		}, w.troubles()...),
	}
}

// failingOver returns a deployment with a primary and a replica that swap roles. Its clients connect to the current
// primary.
func failingOver(t *testing.T) *deployment {
	t.Helper()
	p := redistest.StartPair(t)
	w := new(ways)
	primary := func(of func(*redis.Client) trouble) trouble { // the server that is the primary at that time
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
			{"failover", func(c *chaos) { c.during(&c.down, func() { p.FailOver(); p.Together() }) }},
			{"failover with connections cut", func(c *chaos) {
				c.during(&c.down, func() { p.FailOver(); p.Together() })
				c.cut(p.Nodes[0], func(string) bool { return true })
				c.cut(p.Nodes[1], func(string) bool { return true })
			}},
			primary(cutAll), primary(cutSome), primary(scriptsFlushed), primary(refused),
		}, w.troubles()...),
	}
}

// movingSlots returns a deployment on a cluster of three primaries. Its faults move the hash slots of the test's keys
// from one primary to another.
func movingSlots(t *testing.T) *deployment {
	t.Helper()
	nodes := redistest.StartCluster(t)
	w := new(ways)
	slot := func() int64 { // of one of the keys
		return nodes.Nodes[0].ClusterKeySlot(context.Background(), fmt.Sprintf("{%d}", rand.IntN(chaosKeys))).Val()
	}
	troubles := append([]trouble{
		{"slot moved", func(c *chaos) { c.during(&c.down, func() { nodes.Migrate(slot()).Finish() }) }},
		{"slot moved slowly", func(c *chaos) {
			c.during(&c.down, func() {
				m := nodes.Migrate(slot())
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

// trouble injects random faults until ctx ends. It injects one fault at a time, with pauses of up to 300 ms.
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

// watch records the periods of more than 100 ms in which the test process did not run, because the machine was busy.
// The verdict does not count these periods as waiting.
func (c *chaos) watch(ctx context.Context) {
	for ctx.Err() == nil {
		from := time.Since(c.began)
		time.Sleep(10 * time.Millisecond)
		if to := time.Since(c.began); to-from > 100*time.Millisecond {
			c.mu.Lock()
			c.down = append(c.down, span{from, to})
			c.mu.Unlock()
			c.count("standstill of the machine")
		}
	}
}

func cutAll(server *redis.Client) trouble {
	return trouble{"all connections cut", func(c *chaos) { c.cut(server, func(string) bool { return true }) }}
}

func cutSome(server *redis.Client) trouble {
	some := func(string) bool { return rand.IntN(3) == 0 }
	return trouble{"some connections cut", func(c *chaos) { c.cut(server, some) }}
}

func scriptsFlushed(server *redis.Client) trouble {
	return trouble{"scripts flushed", func(*chaos) { _ = server.ScriptFlush(context.Background()).Err() }}
}

// refused returns a fault in which Redis refuses writes because it has too few replicas.
func refused(server *redis.Client) trouble {
	return trouble{"writes refused", func(c *chaos) {
		c.configured(server, "min-replicas-to-write", "9", "0", rand.N(chaosTTL))
	}}
}

// cut makes server close every connection whose client id satisfies the function which. It spares the connections of
// replicas and its own connection to server.
func (c *chaos) cut(server *redis.Client, which func(id string) bool) {
	ctx := context.Background()
	for line := range strings.Lines(server.ClientList(ctx).Val()) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		spared := regexp.MustCompile(`cmd=client\|list|flags=[SMO]`).MatchString(line)
		if !spared && which(id) {
			_ = server.ClientKillByFilter(ctx, "ID", id).Err()
		}
	}
}

// configured sets a server's option to value for the given length, and then back to its usual value. During that time
// the server counts as down.
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

// restart kills Redis and starts it again without its data.
func (c *chaos) restart(server *redistest.Server) {
	c.during(&c.gone, func() {
		c.during(&c.down, func() {
			server.Kill()
			time.Sleep(rand.N(100 * time.Millisecond))
			server.Restart(c.T)
		})
	})
}
