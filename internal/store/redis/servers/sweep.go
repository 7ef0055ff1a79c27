package servers

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
)

// Sweep removes the keys that killed runs left on the server that the options name. It does not
// touch keys of a live run, or if it cannot know which runs are alive.
func Sweep(ctx context.Context, options Options) (store.Swept, error) {
	var swept store.Swept
	s := &Server{dials: make(chan struct{}, dialsAtOnce)}
	err := s.open(ctx, Options{Address: options.Address, CAFile: options.CAFile, RunID: options.RunID}, Topology{})
	if err == nil {
		swept = s.ofDead(ctx, store.Keys.Sweep)
	}
	return swept, errors.Join(err, ctx.Err(), s.Close(ctx))
}

// ofDead looks for the keys of dead runs on every primary, or removes them.
func (s *Server) ofDead(ctx context.Context, do func(store.Keys, context.Context, *store.Swept)) store.Swept {
	var swept store.Swept
	for _, n := range s.primaries() {
		do(n.keys(), ctx, &swept)
	}
	return swept
}

// keys are those on a node.
func (n *node) keys() store.Keys {
	remove := unlink
	if n.software.Mode == "cluster" {
		remove = unlinkEach
	}
	return store.Keys{
		Store: store.Redis, Addr: n.addr(),
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
