package etcd

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
)

// guarded is a counter that raises its floor on every access, including reads, and refuses older
// tokens (M. Kleppmann, How to do distributed locking, 2016).
type guarded struct {
	client  *clientv3.Client
	counter string
	token   int64
}

// touch raises the floor and executes do in the same transaction. The floor is text whose order is
// that of the numbers.
func (g guarded) touch(ctx context.Context, do clientv3.Op) (*clientv3.TxnResponse, error) {
	floor, token := g.counter+":floor", fmt.Sprintf("%020d", g.token)
	answer, err := g.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(floor), ">", token)). // false if there is no floor yet
		Else(clientv3.OpPut(floor, token), do).Commit()
	if err == nil && answer.Succeeded {
		err = store.ErrStale
	}
	return answer, err
}

func (g guarded) Read(ctx context.Context) (int64, error) {
	answer, err := g.touch(ctx, clientv3.OpGet(g.counter))
	if err != nil {
		return 0, fmt.Errorf("read the counter with token %d: %w", g.token, err)
	}
	for _, kv := range answer.Responses[1].GetResponseRange().GetKvs() {
		return number(kv.Value)
	}
	return 0, nil
}

func (g guarded) Write(ctx context.Context, n int64) error {
	if _, err := g.touch(ctx, clientv3.OpPut(g.counter, strconv.FormatInt(n, 10))); err != nil {
		return fmt.Errorf("write the counter with token %d: %w", g.token, err)
	}
	return nil
}

// unguarded is a counter that checks no tokens.
type unguarded struct {
	client  *clientv3.Client
	counter string
}

func (u unguarded) Read(ctx context.Context) (int64, error) {
	answer, err := u.client.Get(ctx, u.counter)
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	for _, kv := range answer.Kvs {
		return number(kv.Value)
	}
	return 0, nil
}

func (u unguarded) Write(ctx context.Context, n int64) error {
	if _, err := u.client.Put(ctx, u.counter, strconv.FormatInt(n, 10)); err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

func number(text []byte) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}
