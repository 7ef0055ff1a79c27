package etcd

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
)

// instance is the client of one application instance.
type instance struct {
	store.Without
	client *clientv3.Client
}

// Connect opens the client of an instance. The client has one connection to each member. All callers share these
// connections, so the size of the pool has no effect.
func (s *Server) Connect(ctx context.Context, _ string, _ int, detour store.Through) (store.Instance, error) {
	client, err := clientv3.New(s.to.config(s.Meter.Instance(), detour))
	if err != nil {
		return nil, s.because(ctx, err)
	}
	first, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err = client.Get(first, probeKey, clientv3.WithKeysOnly()); err != nil {
		return nil, errors.Join(s.because(ctx, err), closed(client))
	}
	return &instance{client: client}, nil
}

// Nodes returns the client for strategies.Config, as one node for all members.
func (i *instance) Nodes() []any { return []any{i.client} }

// Close closes the client with its connections.
func (i *instance) Close() error { return closed(i.client) }

// RoundTrips measures the time of linearizable reads of a missing key, and then of writes. It uses the observer's
// client and sends each request after the reply to the previous one.
func (s *Server) RoundTrips(ctx context.Context, _ string) (times store.RoundTrips, err error) {
	times.PingP50, times.PingP99, err = store.TimeCommand(s.Refused, func() error {
		_, err := s.client.Get(ctx, probeKey, clientv3.WithKeysOnly())
		return err
	})
	if err != nil {
		return times, err
	}
	err = s.scratch(ctx, func(put func() error) (err error) {
		times.ScriptP50, times.ScriptP99, err = store.TimeCommand(s.Refused, put)
		return err
	})
	return times, err
}

// scratch calls do with a function that writes a key of the run. The key has a lease of 60 s, so it disappears even if
// lockbench is killed.
func (s *Server) scratch(ctx context.Context, do func(put func() error) error) error {
	const ttl = 60 // seconds
	granted, err := s.client.Grant(ctx, ttl)
	if err != nil {
		return err
	}
	defer func() { _, _ = s.client.Revoke(context.WithoutCancel(ctx), granted.ID) }()
	return do(func() error {
		_, err := s.client.Put(ctx, "lockbench:{"+s.RunID+":0:0}", "", clientv3.WithLease(granted.ID))
		return err
	})
}
