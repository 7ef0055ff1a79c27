package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// byNext queues like a Mutex, but its watches begin at the next revision. The watches of a Mutex begin at a past
// revision, and etcd serves such watches only every 100 ms.
func (l *Locker) byNext(ctx context.Context, s *session, name string) (entry, error) {
	e := entry{key: fmt.Sprintf("%s/%x", name, s.Lease())}
	before, at, err := l.youngestKey(ctx, s, name, clientv3.OpPut(e.key, "", clientv3.WithLease(s.Lease())))
	e.created = at
	for err == nil && before != "" {
		if err = waitUntilDeleted(ctx, s.Client(), before, at); err == nil {
			own, older := clientv3.OpGet(e.key, clientv3.WithKeysOnly()), clientv3.WithMaxCreateRev(e.created-1)
			before, at, err = l.youngestKey(ctx, s, name, own, older)
			l.config.Probe.Wake(before == "")
		}
	}
	return e, err
}

// youngestKey returns the youngest key of the queue, or "" if there is none. It considers only the keys that the etcd
// options in the parameter which select. at is etcd's revision. The same transaction executes own, which puts the
// caller's key or checks that this key still exists.
func (l *Locker) youngestKey(
	ctx context.Context, s *session, name string, own clientv3.Op, which ...clientv3.OpOption,
) (key string, at int64, err error) {
	which = append(which, append(clientv3.WithLastCreate(), clientv3.WithKeysOnly())...)
	answer, err := s.Client().Txn(ctx).Then(clientv3.OpGet(name+"/", which...), own).Commit()
	l.config.Probe.Attempt()
	if err != nil {
		return "", 0, err
	}
	if own.IsGet() && len(answer.Responses[1].GetResponseRange().Kvs) == 0 {
		return "", 0, concurrency.ErrSessionExpired
	}
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		key = string(kv.Key)
	}
	return key, answer.Header.Revision, nil
}

// waitUntilDeleted returns when key, which existed at the revision at, is deleted. The watch begins at a later
// revision. If other clients have written between these two revisions, the key may have been deleted before the watch
// began, and even created again by a session that rejoined the queue. So waitUntilDeleted then checks that the key of
// revision at still exists.
func waitUntilDeleted(ctx context.Context, client *clientv3.Client, key string, at int64) error {
	watching, end := context.WithCancel(ctx)
	defer end()
	for told := range client.Watch(watching, key, clientv3.WithFilterPut(), clientv3.WithCreatedNotify()) {
		switch {
		case told.Err() != nil:
			return told.Err()
		case len(told.Events) > 0: // deletions
			return nil
		case told.Created && told.Header.Revision > at:
			found, err := client.Get(ctx, key, clientv3.WithMaxCreateRev(at), clientv3.WithKeysOnly())
			if err != nil || len(found.Kvs) == 0 {
				return err
			}
		}
	}
	return errors.Join(ctx.Err(), errors.New("the watch has ended"))
}
