package etcd

import (
	"context"

	"go.etcd.io/etcd/client/v3/concurrency"
)

// byMutex is the library's queue.
type byMutex struct{}

func (byMutex) lock(ctx context.Context, s *session, name string) (entry, error) {
	return locked(ctx, s, name, (*concurrency.Mutex).Lock)
}

func (byMutex) tryLock(ctx context.Context, s *session, name string) (entry, error) {
	return locked(ctx, s, name, (*concurrency.Mutex).TryLock)
}

func locked(ctx context.Context, s *session, name string, lock func(*concurrency.Mutex, context.Context) error) (entry, error) {
	m := concurrency.NewMutex(s.Session, name)
	if err := lock(m, ctx); err != nil {
		s.clean = m.Key() == deleted
		return entry{}, err
	}
	// Header().Revision may be from a later look; this is the revision of the key's creation.
	owner := m.IsOwner()
	return entry{m.Key(), owner.GetCompare().GetCreateRevision()}, nil
}

// deleted is what a Mutex calls its key when it has deleted it.
const deleted = "\x00"
