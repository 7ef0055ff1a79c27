package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// instance is one application instance's client.
type instance struct {
	store.Without
	client  *clientv3.Client
	present *concurrency.Session
}

// Connect opens an instance's client: one connection to each member, which all callers share. The size of the pool has
// no effect.
func (s *Server) Connect(ctx context.Context, name string, _ int, detour store.Through) (store.Instance, error) {
	client, err := clientv3.New(s.to.config(s.Meter.Instance(), detour))
	if err != nil {
		return nil, s.because(ctx, err)
	}
	i := &instance{client: client}
	first, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err = client.Get(first, nobody, clientv3.WithKeysOnly()); err == nil && s.present != nil {
		i.present, err = announce(first, s.client, name)
	}
	if err != nil {
		return nil, errors.Join(s.because(ctx, err), i.Close())
	}
	return i, nil
}

// Nodes returns the one client for strategies.Config.
func (i *instance) Nodes() []any { return []any{i.client} }

// Close closes the connections.
func (i *instance) Close() error {
	if i.present != nil {
		_ = i.present.Close() // else its TTL ends it
	}
	return closed(i.client)
}

// Counter returns the counter of this name.
func (i *instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	return store.Fenced(fence, counter{i.client, name, nil}, counter{i.client, name, &token})
}

// counter is a key with a number. With a token it raises its floor on every access, including reads, and refuses older
// tokens (M. Kleppmann, How to do distributed locking, 2016).
type counter struct {
	client *clientv3.Client
	name   string
	token  *int64 // nil: no token is checked
}

// access executes do, and raises the floor in the same transaction. The floor is text whose order is that of the
// numbers.
func (c counter) access(ctx context.Context, do clientv3.Op) (*clientv3.TxnResponse, error) {
	txn := c.client.Txn(ctx)
	if c.token == nil {
		return txn.Then(do).Commit()
	}
	floor, token := c.name+":floor", fmt.Sprintf("%020d", *c.token)
	answer, err := txn.If(clientv3.Compare(clientv3.Value(floor), ">", token)). // false if there is no floor yet
											Else(do, clientv3.OpPut(floor, token)).Commit()
	if err == nil && answer.Succeeded {
		err = store.ErrStale
	}
	return answer, err
}

func (c counter) Read(ctx context.Context) (int64, error) {
	answer, err := c.access(ctx, clientv3.OpGet(c.name))
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	for _, kv := range answer.Responses[0].GetResponseRange().GetKvs() {
		n, err := strconv.ParseInt(string(kv.Value), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the counter: %w", err)
		}
		return n, nil
	}
	return 0, nil
}

func (c counter) Write(ctx context.Context, n int64) error {
	if _, err := c.access(ctx, clientv3.OpPut(c.name, strconv.FormatInt(n, 10))); err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// RoundTrips times a linearizable read of a missing key, and a write, one after the other, as the observer.
func (s *Server) RoundTrips(ctx context.Context, _ string) (times store.RoundTrips, err error) {
	times.PingP50, times.PingP99, err = store.TimeCommand(s.Refused, func() error {
		_, err := s.client.Get(ctx, nobody, clientv3.WithKeysOnly())
		return err
	})
	if err != nil {
		return times, err
	}
	key := "lockbench:{" + s.RunID + ":0:0}:counter"
	defer func() { _, _ = s.client.Delete(context.WithoutCancel(ctx), key) }()
	times.ScriptP50, times.ScriptP99, err = store.TimeCommand(s.Refused, func() error {
		_, err := s.client.Put(ctx, key, "")
		return err
	})
	return times, err
}

// connected is the prefix of keys that stand for connections on a user's etcd, which has no names for connections:
// connected/NAME/LEASE.
const connected = "lockbench/connected/"

// announce creates the key for a name, which exists until its session is closed. A killed lockbench counts as connected
// for ten more seconds.
func announce(ctx context.Context, client *clientv3.Client, name string) (*concurrency.Session, error) {
	granted, err := client.Grant(ctx, 10)
	if err != nil {
		return nil, err
	}
	// Here the TTL only limits how long Close takes.
	present, err := concurrency.NewSession(client, concurrency.WithLease(granted.ID), concurrency.WithTTL(2))
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%s%s/%x", connected, name, granted.ID)
	if _, err = client.Put(ctx, key, "", clientv3.WithLease(granted.ID)); err != nil {
		return nil, errors.Join(err, present.Close())
	}
	return present, nil
}
