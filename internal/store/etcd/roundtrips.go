package etcd

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/store"
)

// RoundTrips times a linearizable read of a missing key, and a write, one after the other on one
// connection.
func (s *Server) RoundTrips(ctx context.Context, name string) (store.RoundTrips, error) {
	var times store.RoundTrips
	connected, err := s.Connect(ctx, name, 1, nil)
	if err != nil {
		return times, fmt.Errorf("connect for the baselines: %w", err)
	}
	defer func() { _ = connected.Close() }()
	client := connected.(*instance).client
	if times.PingP50, times.PingP99, err = store.TimeCommand(s.Refused, func() error { return ask(ctx, client) }); err != nil {
		return times, err
	}
	key := "lockbench:{" + s.runID + ":0:0}:counter"
	defer func() { _, _ = s.client.Delete(context.WithoutCancel(ctx), key) }()
	times.ScriptP50, times.ScriptP99, err = store.TimeCommand(s.Refused, func() error {
		_, err := client.Put(ctx, key, "")
		return err
	})
	return times, err
}
