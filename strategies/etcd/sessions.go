package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/strategies"
)

const (
	// grace limits how long a caller waits for the end of a session.
	grace = time.Second
	// atOnce limits the sessions that are made or ended at the same time.
	atOnce = 16
)

// session is an etcd session of one acquisition at a time.
type session struct {
	*concurrency.Session
	end context.CancelFunc // ends its requests and its renewals
}

// over says whether the session has ended, as far as is known here.
func (s *session) over() bool { return s.Ctx().Err() != nil }

// within queues up in the session until ctx ends, and with it all that the session does: a Mutex that gives up a wait
// deletes its key with its client's context, however long that takes. A session with an error is not used again.
func (s *session) within(ctx context.Context, do func(context.Context) (entry, error)) (entry, error) {
	stop := context.AfterFunc(ctx, s.end)
	e, err := do(s.Ctx())
	if !stop() { // ctx has ended, perhaps after the lock was granted
		s.end()
	}
	if err == nil && s.over() {
		err = concurrency.ErrSessionExpired
	}
	return e, err
}

// sessions are the sessions of one Locker.
type sessions struct {
	client     *clientv3.Client
	ttl        int             // in seconds
	life       context.Context // of all sessions
	end        context.CancelFunc
	revoking   context.Context // of requests that end sessions
	giveUp     context.CancelFunc
	background sync.WaitGroup

	mu     sync.Mutex
	closed bool
	idle   []*session
}

func (p *sessions) init(client *clientv3.Client, ttl time.Duration) {
	p.client, p.ttl = client, int((ttl+time.Second-1)/time.Second)
	p.life, p.end = context.WithCancel(client.Ctx())
	p.revoking, p.giveUp = context.WithCancel(client.Ctx())
}

// inBackground calls do in a goroutine that close waits for; false after close.
func (p *sessions) inBackground(do func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.background.Go(do)
	}
	return !p.closed
}

// take returns an idle session, or a new one. If ctx ends meanwhile, the new one is kept for the next caller.
func (p *sessions) take(ctx context.Context) (*session, error) {
	if s := p.kept(); s != nil || ctx.Err() != nil {
		return s, ctx.Err()
	}
	var s *session
	var err error
	made := make(chan struct{})
	wanted := make(chan bool, 1) // whether the caller still waits
	begun := p.inBackground(func() {
		s, err = p.open()
		close(made)
		if !<-wanted && err == nil {
			p.put(s)
		}
	})
	if !begun {
		return nil, strategies.ErrClosed
	}
	select {
	case <-made:
		wanted <- true
		return s, err
	case <-ctx.Done():
		wanted <- false
		return nil, ctx.Err()
	}
}

// kept returns an idle session that has not ended; nil if there is none.
func (p *sessions) kept() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !s.over() {
			return s
		}
		s.end()
	}
	return nil
}

// open makes a session. It uses the connections of the caller's client, but its requests end with the session.
func (p *sessions) open() (*session, error) {
	life, end := context.WithCancel(p.life)
	own := clientv3.NewCtxClient(life, clientv3.WithZapLogger(p.client.GetLogger()))
	own.KV, own.Lease, own.Watcher = p.client.KV, p.client.Lease, p.client.Watcher
	made, err := concurrency.NewSession(own, concurrency.WithTTL(p.ttl), concurrency.WithContext(life))
	if err != nil {
		end()
		if p.life.Err() != nil {
			err = strategies.ErrClosed
		}
		return nil, err
	}
	return &session{made, end}, nil
}

// put keeps a session without keys for the next caller, or ends it.
func (p *sessions) put(s *session) {
	p.mu.Lock()
	keep := !p.closed && !s.over()
	if keep {
		p.idle = append(p.idle, s)
	}
	p.mu.Unlock()
	if !keep {
		p.revoke(s)
	}
}

// revoke ends a session, which deletes its keys. It returns when that is done, or after the grace, while it goes on in
// the background.
func (p *sessions) revoke(s *session) {
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-p.discard(s):
	case <-patience.C:
	}
}

// discard ends a session in the background; after close it does not return before that.
func (p *sessions) discard(s *session) (gone <-chan struct{}) {
	s.end()
	done := make(chan struct{})
	end := func(ctx context.Context) {
		defer close(done)
		<-s.Done()
		_, _ = p.client.Revoke(ctx, s.Lease()) // without an answer its TTL ends it
	}
	if !p.inBackground(func() { end(p.revoking) }) {
		ctx, cancel := context.WithTimeout(p.client.Ctx(), grace)
		defer cancel()
		end(ctx)
	}
	return done
}

// fill makes n idle sessions.
func (p *sessions) fill(ctx context.Context, n int) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	taken := make([]*session, n)
	for i := range taken {
		all.Go(func() (err error) {
			taken[i], err = p.take(ctx)
			return err
		})
	}
	err := all.Wait()
	for _, s := range taken {
		if s != nil {
			p.put(s)
		}
	}
	return err
}

// close ends the idle sessions, and the renewals of those in use.
func (p *sessions) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.end() // ends all requests that the sessions have under way
	late := time.AfterFunc(grace, p.giveUp)
	defer late.Stop()
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, s := range idle {
		all.Go(func() error { p.discard(s); return nil })
	}
	_ = all.Wait()
	p.background.Wait()
}
