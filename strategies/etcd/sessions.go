package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/background"
)

const (
	// grace is how long a caller whose ctx has ended still waits for etcd to open a session. It is also how long a caller
	// waits for etcd to end a session.
	grace = time.Second
	// atOnce is the largest number of sessions that fill opens at the same time.
	atOnce = 16
)

// session is an etcd session that one acquisition at a time uses.
type session struct {
	*concurrency.Session
	end context.CancelFunc // ends its requests and its renewals
}

// over reports whether this process knows that the session has ended.
func (s *session) over() bool { return s.Ctx().Err() != nil }

// within calls do, which waits in the queue with the session. If ctx ends, within ends all requests of the session.
// Without this, a Mutex that gives up a wait would delete its key with the context of its client, and this deletion may
// take arbitrarily long. After an error, the session must not be used again.
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

// sessions is the set of sessions of one Locker.
type sessions struct {
	client     *clientv3.Client
	ttl        int64           // in seconds
	life       context.Context // ends all sessions
	end        context.CancelFunc
	revoking   context.Context // for requests that end sessions
	giveUp     context.CancelFunc
	background background.Group // runs these requests

	mu     sync.Mutex
	closed bool
	idle   []*session
}

func (p *sessions) init(client *clientv3.Client, ttl time.Duration) {
	p.client, p.ttl = client, int64((ttl+time.Second-1)/time.Second)
	p.life, p.end = context.WithCancel(client.Ctx())
	p.revoking, p.giveUp = context.WithCancel(client.Ctx())
}

// take returns an idle session that has not ended, or a new one. If ctx ends before the new session exists, take
// returns the error of ctx and keeps the session for the next caller.
func (p *sessions) take(ctx context.Context) (*session, error) {
	if s := p.kept(); s != nil || ctx.Err() != nil {
		return s, ctx.Err()
	}
	s, err := p.open(ctx)
	if err == nil && ctx.Err() != nil {
		p.put(s)
		err = ctx.Err()
	}
	return s, err
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

// open opens a session. It uses the connections of the caller's client, but its requests end with the session. If ctx
// ends, open still waits for etcd's reply for grace, because a lease of etcd whose ID is not known cannot be revoked
// and stays for its TTL.
func (p *sessions) open(ctx context.Context) (*session, error) {
	asking, cancel := context.WithCancel(p.life)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	granted, err := p.client.Grant(asking, p.ttl)
	if err != nil {
		return nil, p.because(ctx, err)
	}
	life, end := context.WithCancel(p.life)
	own := clientv3.NewCtxClient(life, clientv3.WithZapLogger(p.client.GetLogger()))
	own.KV, own.Lease, own.Watcher = p.client.KV, p.client.Lease, p.client.Watcher
	made, err := concurrency.NewSession(own, concurrency.WithLease(granted.ID), concurrency.WithContext(life))
	if err != nil {
		end()
		return nil, p.because(ctx, err)
	}
	return &session{made, end}, nil
}

// because returns the error of ctx if ctx has ended, ErrClosed if the Locker is closed, and err otherwise.
func (p *sessions) because(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case p.life.Err() != nil:
		return strategies.ErrClosed
	}
	return err
}

// put keeps a session without keys for the next caller. If the Locker is closed or the session is over, put instead
// ends the session.
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

// revoke ends a session, which deletes its keys. It waits at most for grace. The request then continues in the
// background, so that the keys are deleted when etcd works again, and not only when the TTL expires.
func (p *sessions) revoke(s *session) {
	s.end()
	done := make(chan struct{})
	if !p.background.Go(func() {
		defer close(done)
		<-s.Done()
		_, _ = p.client.Revoke(p.revoking, s.Lease()) // if this fails, the session ends when its TTL expires
	}) { // the Locker is closed and starts nothing in the background
		ctx, cancel := context.WithTimeout(p.client.Ctx(), grace)
		defer cancel()
		_, _ = p.client.Revoke(ctx, s.Lease())
		return
	}
	select {
	case <-done:
	case <-time.After(grace):
	}
}

// fill opens n sessions for later callers, and returns the first error.
func (p *sessions) fill(ctx context.Context, n int) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for range n {
		all.Go(func() error {
			s, err := p.open(ctx)
			if err == nil {
				p.put(s)
			}
			return err
		})
	}
	return all.Wait()
}

// close ends the idle sessions, and stops renewing the sessions in use, which then end when their TTL expires.
func (p *sessions) close() {
	p.mu.Lock()
	idle := p.idle
	p.closed, p.idle = true, nil
	p.mu.Unlock()
	p.end() // ends all requests of the sessions
	late := time.AfterFunc(grace, p.giveUp)
	defer late.Stop()
	var all sync.WaitGroup
	for _, s := range idle {
		all.Go(func() { p.revoke(s) })
	}
	all.Wait()
	p.background.Close()
	p.giveUp()
}
