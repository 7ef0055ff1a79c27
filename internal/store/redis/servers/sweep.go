package servers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
)

// Sweep removes the keys that a killed lockbench left on the server that the options name. It does
// not touch keys of a live run, or if it cannot know which runs are alive.
func Sweep(ctx context.Context, options Options) (store.Swept, error) {
	swept := store.Swept{Kind: "keys"}
	s := &Server{dials: make(chan struct{}, dialsAtOnce)}
	err := s.open(ctx, Options{Address: options.Address, CAFile: options.CAFile, RunID: options.RunID}, Topology{})
	if err == nil {
		swept = s.sweep(ctx, 0)
	}
	return swept, errors.Join(err, ctx.Err(), s.Close(ctx))
}

// sweep removes the keys of dead runs. budget bounds the search on each node; 0 means no bound.
func (s *Server) sweep(ctx context.Context, budget time.Duration) store.Swept {
	swept := store.Swept{Kind: "keys"}
	for _, n := range s.primaries() {
		if err := n.keys().Sweep(ctx, budget, &swept); err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("keys on %s: %v", n.addr(), err))
		}
	}
	return swept
}

// keys are those of lockbench on a node.
func (n *node) keys() store.Keys {
	remove := unlink
	if n.software.Mode == "cluster" {
		remove = unlinkEach
	}
	return store.Keys{
		Scan: func(ctx context.Context, visit func(string)) error {
			found, err := scan(ctx, n.observer, "*lockbench:{*")
			for _, key := range found {
				visit(key)
			}
			return err
		},
		Connected: func(ctx context.Context) ([]string, error) {
			list, err := n.observer.ClientList(ctx).Result()
			var names []string
			for client := range replies.Clients(list) {
				names = append(names, client["name"])
			}
			return names, err
		},
		Remove: func(ctx context.Context, keys []string) error { return remove(ctx, n.observer, keys) },
	}
}

// logSwept reports what was removed, if anything.
func (o Options) logSwept(swept store.Swept) {
	if swept.Removed > 0 {
		o.logf("removed what a killed lockbench left: %d keys", swept.Removed)
	}
	for _, skipped := range swept.Skipped {
		o.logf("not swept: %s", skipped)
	}
}
