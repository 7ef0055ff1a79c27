package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockbench/lockbench/strategies"
)

// byNext is the same queue as a Mutex's, but its watches begin at the next revision, not at a
// past one.
type byNext struct{ probe *strategies.Probe }

func (q byNext) lock(ctx context.Context, s *session, name string) (entry, error) {
	e, first, err := q.enter(ctx, s, name)
	if err == nil && !first {
		if err = q.wait(ctx, s, name, e); err != nil {
			q.leave(s, e)
		}
	}
	return e, err
}

func (q byNext) tryLock(ctx context.Context, s *session, name string) (entry, error) {
	e, first, err := q.enter(ctx, s, name)
	if err == nil && !first {
		q.leave(s, e)
		err = concurrency.ErrLocked
	}
	return e, err
}

// enter makes the session's key, and says whether it is the first.
func (q byNext) enter(ctx context.Context, s *session, name string) (e entry, first bool, err error) {
	e.key = fmt.Sprintf("%s/%x", name, s.Lease())
	oldest := clientv3.OpGet(name+"/", clientv3.WithFirstCreate()...)
	answer, err := s.Client().Txn(ctx).Then(clientv3.OpPut(e.key, "", clientv3.WithLease(s.Lease())), oldest).Commit()
	q.probe.Attempt()
	if err != nil {
		return e, false, err
	}
	e.created = answer.Header.Revision
	found := answer.Responses[1].GetResponseRange().GetKvs()
	return e, len(found) > 0 && found[0].GetCreateRevision() == e.created, nil
}

// leave deletes the key. It does not use the caller's context, which may have ended.
func (q byNext) leave(s *session, e entry) {
	_, err := s.Client().Delete(s.Client().Ctx(), e.key)
	s.clean = err == nil
}

// before is the key before the caller's own, at a revision.
type before struct {
	key      string // "" means none: the caller has the lock
	revision int64
}

// wait returns when no key is before this one.
func (q byNext) wait(ctx context.Context, s *session, name string, e entry) error {
	b, err := q.look(ctx, s, name, e)
	for err == nil && b.key != "" {
		if b, err = q.pass(ctx, s, name, e, b); err == nil {
			q.probe.Wake(b.key == "")
		}
	}
	return err
}

// pass waits for the key before to be deleted, and returns the next one before. It watches
// from etcd's current revision. If others have written since the look, it looks again: a
// watch from the look's revision would begin in the past.
func (q byNext) pass(ctx context.Context, s *session, name string, e entry, b before) (before, error) {
	watching, end := context.WithCancel(ctx)
	defer end()
	watch := s.Client().Watch(watching, b.key, clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
	for told := range watch {
		if err := told.Err(); err != nil {
			return before{}, err
		}
		if told.Created && told.Header.Revision > b.revision {
			now, err := q.look(ctx, s, name, e)
			if err != nil || now.key != b.key {
				return now, err
			}
		}
		for _, event := range told.Events {
			if event.Type == mvccpb.Event_DELETE {
				return q.look(ctx, s, name, e)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return before{}, err
	}
	return before{}, errors.New("the watch has ended")
}

// look asks for the key before this one, and whether this one is still there.
func (q byNext) look(ctx context.Context, s *session, name string, e entry) (before, error) {
	older := append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(e.created-1), clientv3.WithKeysOnly())
	answer, err := s.Client().Txn(ctx).Then(
		clientv3.OpGet(name+"/", older...), clientv3.OpGet(e.key, clientv3.WithKeysOnly())).Commit()
	q.probe.Attempt()
	if err != nil {
		return before{}, err
	}
	if own := answer.Responses[1].GetResponseRange().GetKvs(); len(own) == 0 || own[0].GetCreateRevision() != e.created {
		return before{}, concurrency.ErrSessionExpired
	}
	b := before{revision: answer.Header.Revision}
	if found := answer.Responses[0].GetResponseRange().GetKvs(); len(found) > 0 {
		b.key = string(found[0].GetKey())
	}
	return b, nil
}
