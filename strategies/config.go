package strategies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config is what every strategy's constructor takes, beside its own options.
type Config struct {
	Nodes  []Node        // one for most, N independent ones for a quorum
	Prefix string        // put before every key it is asked to lock
	TTL    time.Duration // how long a lease lasts when its holder dies
	// Callers is the number of clients expected to use the Locker at a time, a
	// hint for pools; 0 is unknown.
	Callers int
	Probe   *Probe // may be nil
}

// Validate returns every fault that would keep a strategy that needs that many
// nodes from working, joined.
func (c Config) Validate(nodes int) error {
	var faults []error
	if len(c.Nodes) < nodes {
		faults = append(faults, fmt.Errorf("it needs %d Redis nodes, there are %d", nodes, len(c.Nodes)))
	}
	if nodes > 0 && c.TTL < time.Millisecond {
		faults = append(faults, fmt.Errorf("the TTL must be at least 1ms, not %v", c.TTL))
	}
	return errors.Join(faults...)
}

// Key returns the lock's key as it stands in Redis.
func (c Config) Key(key string) string { return c.Prefix + key }

// Node is one Redis: the client to use and the options it was made from, so
// that a strategy can open a pool of its own and a peer dial with its own
// library. The client belongs to the caller.
type Node struct {
	Client  redis.UniversalClient
	Options *redis.UniversalOptions
}

// Dial opens another client to the same node, with changed options. The caller
// closes it.
func (n Node) Dial(change func(*redis.UniversalOptions)) redis.UniversalClient {
	options := *n.Options
	change(&options)
	return redis.NewUniversalClient(&options)
}

// Dialer opens a connection to Redis, as UniversalOptions.Dialer does.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through makes a Dialer of another whose connections take a detour: one that
// breaks or delays them on purpose.
type Through = func(Dialer) Dialer
