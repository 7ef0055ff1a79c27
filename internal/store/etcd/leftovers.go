package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
			left.Keys = append(left.Keys, lease+strconv.FormatInt(int64(l.ID), 16))
		}
	}
	if name == "" {
		return left, nil
	}
	names, err := s.Connected(ctx, name)
	left.Connections = slices.DeleteFunc(names, func(other string) bool { return other != name })
	return left, err
}

// lease is the prefix of leases in the list of keys.
const lease = "the lease "

// Remove deletes keys and revokes leases.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		var err error
		if id, is := strings.CutPrefix(key, lease); is {
			var number int64
			if number, err = strconv.ParseInt(id, 16, 64); err == nil {
				_, err = s.client.Revoke(ctx, clientv3.LeaseID(number))
			}
			if errors.Is(err, rpctypes.ErrLeaseNotFound) { // it has ended meanwhile
				err = nil
			}
		} else {
			_, err = s.client.Delete(ctx, key)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", key, err)
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

// sweep removes the keys of runs without any connection. budget bounds the search; 0 means no bound.
func (s *Server) sweep(ctx context.Context, budget time.Duration) error {
	return store.Keys{
		Scan:      s.scan,
		Connected: func(ctx context.Context) ([]string, error) { return s.Connected(ctx, "lockbench:") },
		Remove:    s.Remove,
	}.Sweep(ctx, budget, &s.swept)
}

// Sweep removes the keys of dead runs, see store.Sweeper.
func (k Store) Sweep(ctx context.Context, runID string, o store.Options) (store.Swept, error) {
	opened, err := k.Open(ctx, runID, o)
	if err != nil {
		return store.Swept{}, err
	}
	s := opened.(*Server)
	if err := s.sweep(ctx, 0); err != nil {
		s.swept.Skipped = append(s.swept.Skipped, fmt.Sprintf("keys on %s: %v", s.description.Address, err))
	}
	s.swept.Kind = "keys"
	return s.swept, errors.Join(ctx.Err(), s.Close(ctx))
}
