package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// byNext is the same queue as a Mutex's, but its watches begin at the next revision and not at a past one.
func (l *Locker) byNext(ctx context.Context, s *session, name string) (entry, error) {
	e := entry{key: fmt.Sprintf("%s/%x", name, s.Lease())}
	put := clientv3.OpPut(e.key, "", clientv3.WithLease(s.Lease()))
	oldest := clientv3.OpGet(name+"/", clientv3.WithFirstCreate()...)
	answer, err := s.Client().Txn(ctx).Then(put, oldest).Commit()
	l.config.Probe.Attempt()
	if err != nil {
		return e, err
	}
	e.created = answer.Header.Revision
	if first := keyOf(answer, 1); first != nil && first.CreateRevision == e.created {
		return e, nil
	}
	before, at, err := l.look(ctx, s, name, e)
	for err == nil && before != "" {
		if before, at, err = l.pass(ctx, s, name, e, before, at); err == nil {
			l.config.Probe.Wake(before == "")
		}
	}
	return e, err
}

// pass waits for the deletion of the key before, and returns the next key before with etcd's revision. If others have
// written since the look, it looks again: a watch from the look's revision would begin in the past.
func (l *Locker) pass(
	ctx context.Context, s *session, name string, e entry, before string, at int64,
) (string, int64, error) {
	watching, end := context.WithCancel(ctx)
	defer end()
	for told := range s.Client().Watch(watching, before, clientv3.WithFilterPut(), clientv3.WithCreatedNotify()) {
		if err := told.Err(); err != nil {
			return "", 0, err
		}
		if told.Created && told.Header.Revision > at {
			if now, at, err := l.look(ctx, s, name, e); err != nil || now != before {
				return now, at, err
			}
		}
		for _, event := range told.Events {
			if event.Type == mvccpb.Event_DELETE {
				return l.look(ctx, s, name, e)
			}
		}
	}
	return "", 0, errors.Join(ctx.Err(), errors.New("the watch has ended"))
}

// look returns the key before this one, "" if there is none, with etcd's revision. Its error says if this key is gone.
func (l *Locker) look(ctx context.Context, s *session, name string, e entry) (before string, at int64, err error) {
	older := append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(e.created-1), clientv3.WithKeysOnly())
	answer, err := s.Client().Txn(ctx).Then(
		clientv3.OpGet(name+"/", older...), clientv3.OpGet(e.key, clientv3.WithKeysOnly())).Commit()
	l.config.Probe.Attempt()
	if err != nil {
		return "", 0, err
	}
	if own := keyOf(answer, 1); own == nil || own.CreateRevision != e.created {
		return "", 0, concurrency.ErrSessionExpired
	}
	if found := keyOf(answer, 0); found != nil {
		before = string(found.Key)
	}
	return before, answer.Header.Revision, nil
}

// keyOf returns the key that a transaction's read has found; nil if there is none.
func keyOf(answer *clientv3.TxnResponse, read int) *mvccpb.KeyValue {
	for _, kv := range answer.Responses[read].GetResponseRange().GetKvs() {
		return kv
	}
	return nil
}
