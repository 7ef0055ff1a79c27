package strategies

import (
	"errors"
	"fmt"
	"time"
)

// ConfigOf is the configuration that every strategy's constructor takes in addition to the strategy's options. N is the
// type of a node of the strategy's store: for Redis a goredis.Node, which is a go-redis client with its options.
type ConfigOf[N any] struct {
	Nodes  []N           // one node for most strategies, several independent nodes for a quorum
	Prefix string        // prepended to every key
	TTL    time.Duration // how long a lease lasts unless it is extended or released
	// Callers is the number of clients that are expected to use the Locker at the same time. It is a hint for the size of
	// connection pools. 0 means unknown.
	Callers int
	Probe   *Probe // may be nil
}

// Config is a ConfigOf for any store. The registry converts it to the ConfigOf of a strategy's store.
type Config = ConfigOf[any]

// Validate returns an error if the configuration has fewer nodes than the strategy needs, or a TTL below 1 ms. If both
// apply, it joins the two errors.
func (c ConfigOf[N]) Validate(nodes int) error {
	var problems []error
	if len(c.Nodes) < nodes {
		problems = append(problems, fmt.Errorf("the number of nodes must be at least %d, not %d", nodes, len(c.Nodes)))
	}
	if nodes > 0 && c.TTL < time.Millisecond {
		problems = append(problems, fmt.Errorf("the TTL must be at least 1ms, not %v", c.TTL))
	}
	return errors.Join(problems...)
}

// Key returns the name of the lock in the store, including the prefix.
func (c ConfigOf[N]) Key(key string) string { return c.Prefix + key }

// Untyped returns the same configuration for Variant.Open, which does not know the type of the store.
func (c ConfigOf[N]) Untyped() Config {
	to, _ := converted[any](c) // it never fails, because every node is of type any
	return to
}

// converted returns the configuration with its nodes converted to the type To, such as the node type of a strategy's
// store.
func converted[To, From any](c ConfigOf[From]) (ConfigOf[To], error) {
	to := ConfigOf[To]{Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers, Probe: c.Probe}
	for _, node := range c.Nodes {
		n, ok := any(node).(To)
		if !ok {
			return to, fmt.Errorf("the strategy needs a node of type %T, not %T", n, node)
		}
		to.Nodes = append(to.Nodes, n)
	}
	return to, nil
}
