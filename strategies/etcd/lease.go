package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/strategies"
)

// lease is a key that is the oldest of its queue.
type lease struct {
	locker  *Locker
	session *session // nil once it was given back
	lost    <-chan struct{}
	entry   entry
	over    bool // there is nothing left to release
}

// FencingToken is the revision that created the holder's key.
func (held *lease) FencingToken() int64 { return held.entry.created }

// Lost returns a channel that is closed when the session is over: etcd has ended it, etcd has
// not renewed it for its TTL, or the Locker was closed.
func (held *lease) Lost() <-chan struct{} { return held.lost }

// Release deletes the key, if it is there, and gives the session back. If that fails it ends
// the session in the background, and the key with it.
func (held *lease) Release(ctx context.Context) error {
	if held.over {
		return strategies.ErrNotHeld
	}
	own := clientv3.Compare(clientv3.CreateRevision(held.entry.key), "=", held.entry.created)
	answer, err := held.locker.client.Txn(ctx).If(own).Then(clientv3.OpDelete(held.entry.key)).Commit()
	if held.session != nil {
		held.locker.sessions.release(ctx, held.session, err == nil && answer.Succeeded)
		held.session = nil
	}
	if err != nil {
		return fmt.Errorf("delete %q: %w", held.entry.key, because(ctx, err))
	}
	held.over = true
	if !answer.Succeeded {
		return strategies.ErrNotHeld
	}
	return nil
}
