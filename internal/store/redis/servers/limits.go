package servers

import (
	"context"
	"fmt"
	"strconv"
	"sync"
)

// Limits are what the tightest node allows.
type Limits struct {
	MaxClients int64 // connections; 0 where the server does not tell
	Connected  int64 // now, ours included
}

// Limits asks for the limits, for a check before a run. It never changes them.
func (s *Server) Limits(ctx context.Context) (Limits, error) {
	var mu sync.Mutex
	var tightest *Limits
	err := s.each(ctx, s.nodes, func(ctx context.Context, n *node) error {
		limits, err := n.limits(ctx)
		if err != nil {
			return fmt.Errorf("%w: read the limits of %s: %w", ErrUnreachable, n.addr(), err)
		}
		mu.Lock()
		defer mu.Unlock()
		if tightest == nil || limits.tighter(*tightest) {
			tightest = &limits
		}
		return nil
	})
	if err != nil {
		return Limits{}, err
	}
	return *tightest, nil
}

func (n *node) limits(ctx context.Context) (Limits, error) {
	fields, err := readInfo(ctx, n.observer, "clients")
	if err != nil {
		return Limits{}, err
	}
	limits := Limits{value(fields.Integer("maxclients")), value(fields.Integer("connected_clients"))}
	if limits.MaxClients == 0 { // before Redis 7, or without INFO
		config, err := n.observer.ConfigGet(ctx, "maxclients").Result()
		if err != nil && !refused(err) {
			return Limits{}, err
		}
		limits.MaxClients, _ = strconv.ParseInt(config["maxclients"], 10, 64)
	}
	return limits, nil
}

func (l Limits) tighter(than Limits) bool {
	if l.MaxClients == 0 || than.MaxClients == 0 {
		return l.MaxClients != 0
	}
	return l.MaxClients-l.Connected < than.MaxClients-than.Connected
}
