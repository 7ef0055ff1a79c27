package servers

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/lockbench/lockbench/internal/store"
)

// Limits reads the limits for a check before a run. It never changes them.
func (s *Server) Limits(ctx context.Context) (store.Limits, error) {
	var mu sync.Mutex
	var tightest *store.Limits
	err := s.onEveryNode(ctx, s.nodes, func(ctx context.Context, n *node) error {
		limits, err := n.limits(ctx)
		if err != nil {
			return fmt.Errorf("%w: read the limits of %s: %w", ErrUnreachable, n.addr(), err)
		}
		mu.Lock()
		defer mu.Unlock()
		if tightest == nil || tighter(limits, *tightest) {
			tightest = &limits
		}
		return nil
	})
	if err != nil {
		return store.Limits{}, err
	}
	return *tightest, nil
}

func (n *node) limits(ctx context.Context) (store.Limits, error) {
	fields, err := readInfo(ctx, n.observer, "clients")
	if err != nil {
		return store.Limits{}, err
	}
	limits := store.Limits{MaxClients: value(fields.Integer("maxclients")), Connected: value(fields.Integer("connected_clients"))}
	if limits.MaxClients == 0 { // before Redis 7, or if INFO is refused
		config, err := n.observer.ConfigGet(ctx, "maxclients").Result()
		if err != nil && !refused(err) {
			return store.Limits{}, err
		}
		limits.MaxClients, _ = strconv.ParseInt(config["maxclients"], 10, 64)
	}
	return limits, nil
}

func tighter(l, than store.Limits) bool {
	if l.MaxClients == 0 || than.MaxClients == 0 {
		return l.MaxClients != 0
	}
	return l.MaxClients-l.Connected < than.MaxClients-than.Connected
}
