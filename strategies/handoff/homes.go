package handoff

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// homes are a process's: one, or in a cluster one for each hash tag, since there a
// message reaches only those who listen in the lock's own slot.
type homes struct {
	config  strategies.Config
	options Options
	cluster *redis.ClusterClient // nil without

	mu     sync.Mutex
	closed bool
	byTag  map[string]*home
}

func newHomes(config strategies.Config, options Options) (*homes, error) {
	h := &homes{config: config, options: options, byTag: map[string]*home{}}
	switch client := config.Nodes[0].Client.(type) {
	case *redis.ClusterClient:
		h.cluster = client
	case *redis.Client:
		h.byTag[""] = newHome(config, options, config.Prefix+"handoff:", "PUBLISH", func(context.Context) (*redis.Client, error) {
			return client, nil
		})
	default:
		return nil, fmt.Errorf("it needs a client of one Redis or of a cluster, not a %T", client)
	}
	return h, nil
}

// of is where the waiters for a lock are.
func (h *homes) of(name string) (*home, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, strategies.ErrClosed
	}
	if h.cluster == nil {
		return h.byTag[""], nil
	}
	tag, _ := tagOf(name)
	one := h.byTag[tag]
	if one == nil {
		one = newHome(h.config, h.options, "{"+tag+"}handoff:", "SPUBLISH", func(ctx context.Context) (*redis.Client, error) {
			h.cluster.ReloadState(ctx) // it is asked when a connection is new or has broken
			return h.cluster.MasterForKey(ctx, name)
		})
		h.byTag[tag] = one
	}
	return one, nil
}

func (h *homes) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	var all sync.WaitGroup
	for _, one := range h.byTag {
		all.Go(one.close)
	}
	all.Wait()
}
