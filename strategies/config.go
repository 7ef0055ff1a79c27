package strategies

import (
	"errors"
	"fmt"
	"time"
)

// ConfigOf is what every strategy's constructor takes, beside its own options. N is how
// its store is reached: for Redis a goredis.Node, a go-redis client with its options.
type ConfigOf[N any] struct {
	Nodes  []N           // one for most, N independent ones for a quorum
	Prefix string        // put before every key it is asked to lock
	TTL    time.Duration // how long a lease lasts when its holder dies
	// Callers is the number of clients expected to use the Locker at a time, a hint for
	// pools; 0 means unknown.
	Callers int
	Probe   *Probe // may be nil
}

// Config is a ConfigOf any store, as the registry passes it on.
type Config = ConfigOf[any]

// Validate returns every error that would keep a strategy that needs that many
// nodes from working, joined.
func (c ConfigOf[N]) Validate(nodes int) error {
	var problems []error
	if len(c.Nodes) < nodes {
		problems = append(problems, fmt.Errorf("it needs %d nodes, there are %d", nodes, len(c.Nodes)))
	}
	if nodes > 0 && c.TTL < time.Millisecond {
		problems = append(problems, fmt.Errorf("the TTL must be at least 1ms, not %v", c.TTL))
	}
	return errors.Join(problems...)
}

// Key returns the lock's key as it stands in the store.
func (c ConfigOf[N]) Key(key string) string { return c.Prefix + key }

// Untyped returns the same for Variant.Open, which does not know the store.
func (c ConfigOf[N]) Untyped() Config {
	to, _ := converted[any](c) // a node of any kind is one
	return to
}

// converted returns the Config for another kind of nodes, such as those of the store that a
// strategy was made for.
func converted[To, From any](c ConfigOf[From]) (ConfigOf[To], error) {
	to := ConfigOf[To]{Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers, Probe: c.Probe}
	for _, node := range c.Nodes {
		n, ok := any(node).(To)
		if !ok {
			return to, fmt.Errorf("it locks in a store that is reached by a %T, not by a %T", n, node)
		}
		to.Nodes = append(to.Nodes, n)
	}
	return to, nil
}
