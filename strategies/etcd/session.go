package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	// grace is how long a wait that has ended may take to leave the queue.
	grace = time.Second
	// closing is how long Close tries to end sessions.
	closing = 5 * time.Second
)

// session is an etcd session of one acquisition at a time.
type session struct {
	*concurrency.Session
	end    context.CancelFunc // ends all that it does
	clean  bool               // no key is left of an acquisition that failed
	unused bool               // it is new
}

// newSession makes a session. Its client is the caller's, but its calls end with the session:
// a Mutex that gives up a wait deletes its key with the client's context, however long that
// takes.
func newSession(ctx context.Context, client *clientv3.Client, seconds int64) (*session, error) {
	granted, err := client.Grant(ctx, seconds)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(client.Ctx())
	own := clientv3.NewCtxClient(life, clientv3.WithZapLogger(client.GetLogger()))
	own.KV, own.Lease, own.Watcher = client.KV, client.Lease, client.Watcher
	made, err := concurrency.NewSession(own, concurrency.WithLease(granted.ID), concurrency.WithContext(life))
	if err != nil {
		end()
		_, _ = client.Revoke(ctx, granted.ID) // else its TTL ends it
		return nil, err
	}
	return &session{Session: made, end: end, unused: true}, nil
}

// over says whether the session has ended, as far as is known here.
func (s *session) over() bool { return s.Ctx().Err() != nil }

// within runs do until ctx or the session has ended. If do does not return within the grace
// after that, it is cut off, and the session with it.
func (s *session) within(ctx context.Context, do func(context.Context) (entry, error)) (entry, error) {
	s.clean = false
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Ctx(), cancel)()
	returned, watched := make(chan struct{}), make(chan struct{})
	unwatched := context.AfterFunc(bounded, func() {
		defer close(watched)
		patience := time.NewTimer(grace)
		defer patience.Stop()
		select {
		case <-returned:
		case <-patience.C:
			s.end()
		}
	})
	e, err := do(bounded)
	close(returned)
	if !unwatched() {
		<-watched
	}
	return e, err
}

// close ends the session, and with it its keys; if etcd cannot be reached, the TTL ends it.
func (s *session) close(ctx context.Context) {
	defer s.end()
	s.Orphan()
	_, _ = s.Client().Revoke(ctx, s.Lease())
}
