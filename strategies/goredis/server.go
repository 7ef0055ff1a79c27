package goredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Server returns the first node, for a strategy that does not work in a cluster. If the node is a cluster, it returns
// an error with the reason noCluster. All its errors begin with the strategy's name.
func Server(c Config, strategy, noCluster string) (Node, error) {
	if err := c.Validate(1); err != nil {
		return Node{}, fmt.Errorf("%s: %w", strategy, err)
	}
	node := c.Nodes[0]
	if node.Clustered() {
		return Node{}, errors.New(strategy + ": " + noCluster)
	}
	return node, nil
}

// CheckKey returns an error for a lock's name that ends in one of the suffixes, because another lock may use a key of
// this name for its queue or counter.
func CheckKey(name string, suffixes ...string) error {
	for _, suffix := range suffixes {
		if lock, internal := strings.CutSuffix(name, suffix); internal {
			return fmt.Errorf("a lock must not be named %q, because the lock %q has a key of this name: choose a name that "+
				"does not end in %q", name, lock, suffix)
		}
	}
	return nil
}

// Load loads scripts into the server's cache, so that EVALSHA finds them.
func Load(ctx context.Context, client redis.UniversalClient, scripts ...*redis.Script) error {
	for _, script := range scripts {
		if err := script.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load a script: %w", err)
		}
	}
	return nil
}

// dials is the largest number of connections that DialAll opens at the same time.
const dials = 32

// DialAll opens n connections, each by a call of dial. It returns the first error.
func DialAll(ctx context.Context, n int, dial func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var dialling sync.WaitGroup
	turns := make(chan struct{}, dials)
	for range n {
		turns <- struct{}{}
		dialling.Go(func() {
			defer func() { <-turns }()
			if ctx.Err() == nil {
				if err := dial(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	dialling.Wait()
	return context.Cause(ctx)
}
