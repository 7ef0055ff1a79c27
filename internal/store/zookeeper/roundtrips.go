package zookeeper

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// RoundTrips times reads of one node, and then writes of it, one after the other in a session of that
// name.
func (s *Server) RoundTrips(ctx context.Context, name string) (store.RoundTrips, error) {
	var times store.RoundTrips
	node := s.node
	node.Dial = counting(s.meter.Instance())
	k, err := openLink(ctx, node, name)
	if err != nil {
		return times, fmt.Errorf("%w: connect for the baselines: %w", ErrUnreachable, err)
	}
	defer k.close(ctx)
	session, err := k.live(ctx)
	if err != nil {
		return times, fmt.Errorf("%w: connect for the baselines: %w", ErrUnreachable, err)
	}
	if times.PingP50, times.PingP99, err = store.TimeCommand(s.Refused, func() error { return exists(ctx, session, k.mine) }); err != nil {
		return times, err
	}
	times.ScriptP50, times.ScriptP99, err = store.TimeCommand(s.Refused, func() error { return session.Set(ctx, k.mine, nil, -1) })
	return times, err
}

func exists(ctx context.Context, session *gozk.Session, path string) error {
	_, err := session.Stat(ctx, path)
	return err
}
