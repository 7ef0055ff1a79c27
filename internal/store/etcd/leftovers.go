package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// Leftovers returns the keys that contain mark, and the connections of that name. On an etcd that
// lockbench started it also returns the leases: sessions that were not ended.
func (s *Server) Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error) {
	var left results.Leftovers
	err := s.scan(ctx, func(key string) {
		if !strings.HasPrefix(key, connected) && strings.Contains(key, mark) {
			left.Keys = append(left.Keys, key)
		}
	})
	if err != nil {
		return results.Leftovers{}, err
	}
	if s.started {
		leases, err := s.client.Leases(ctx)
		if err != nil {
			return results.Leftovers{}, fmt.Errorf("list the leases: %w", err)
		}
		for _, l := range leases.Leases {
			left.Keys = append(left.Keys, fmt.Sprintf("the lease %x", int64(l.ID)))
		}
	}
	if name == "" {
		return left, nil
	}
	names, err := s.Connected(ctx, name)
	left.Connections = slices.DeleteFunc(names, func(other string) bool { return other != name })
	return left, err
}

// Remove deletes keys. On an etcd that lockbench started it also revokes the leases that are left.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if _, err := s.client.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove %s: %w", key, err)
		}
	}
	if !s.started {
		return nil
	}
	leases, err := s.client.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list the leases: %w", err)
	}
	for _, l := range leases.Leases {
		_, err := s.client.Revoke(ctx, l.ID)
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) { // it has ended meanwhile
			return fmt.Errorf("revoke the lease %x: %w", l.ID, err)
		}
	}
	return nil
}

// page is the number of keys per request.
const page = 1000

// scan visits all keys: etcd can only search by prefix. For a user without the right to all keys it
// visits those with our prefix.
func (s *Server) scan(ctx context.Context, look func(key string)) error {
	err := s.scanRange(ctx, "\x00", "\x00", look) // all
	if s.Unauthorised(s.Refused(err)) {
		err = s.scanRange(ctx, ours, clientv3.GetPrefixRangeEnd(ours), look)
	}
	return err
}

// ours is the prefix of all keys of lockbench, unless a lock adds something before it.
const ours = "lockbench"

func (s *Server) scanRange(ctx context.Context, from, end string, look func(key string)) error {
	for {
		answer, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(page))
		if err != nil {
			return fmt.Errorf("list the keys: %w", err)
		}
		for _, kv := range answer.Kvs {
			look(string(kv.Key))
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

// keys are those on etcd.
func (s *Server) keys() store.Keys {
	return store.Keys{
		Store: Name, Addr: s.description.Address,
		Scan:      s.scan,
		Connected: func(ctx context.Context) ([]string, error) { return s.Connected(ctx, "lockbench:") },
		Remove:    s.Remove,
	}
}

// Sweep removes the keys of dead runs, see store.Sweeper.
func (k Store) Sweep(ctx context.Context, runID string, o store.Options) (swept store.Swept, err error) {
	opened, err := k.Open(ctx, runID, o)
	if err != nil {
		return swept, err
	}
	opened.(*Server).keys().Sweep(ctx, &swept)
	return swept, errors.Join(ctx.Err(), opened.Close(ctx))
}
