package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/strategies"
)

// sessions are the sessions of one Locker. Each is used by one acquisition at a time.
type sessions struct {
	client  *clientv3.Client
	seconds int64 // their TTL
	pooled  bool

	life       context.Context // for tasks in the background
	end        context.CancelFunc
	background sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	idle    []*session
	used    map[*session]bool
	waiting []chan opened // in the order in which they came
	opening int
}

// opened is a session that was made, or why not.
type opened struct {
	session *session
	err     error
}

func newSessions(client *clientv3.Client, seconds int64, pooled bool) *sessions {
	p := &sessions{client: client, seconds: seconds, pooled: pooled, used: map[*session]bool{}}
	p.life, p.end = context.WithCancel(client.Ctx())
	return p
}

// take returns an idle session, or a new one. If the caller waits no longer, the new one is
// kept for the next.
func (p *sessions) take(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, strategies.ErrClosed
	}
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if s.over() {
			s.end()
			continue
		}
		p.used[s] = true
		p.mu.Unlock()
		return s, nil
	}
	mine := make(chan opened, 1)
	p.waiting = append(p.waiting, mine)
	if p.opening < len(p.waiting) {
		p.opening++
		p.background.Go(p.open)
	}
	p.mu.Unlock()
	select {
	case got := <-mine:
		return got.session, got.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	for n, other := range p.waiting {
		if other == mine {
			p.waiting = append(p.waiting[:n], p.waiting[n+1:]...)
			p.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	p.mu.Unlock()
	if got := <-mine; got.err == nil { // it came at the same time
		p.giveBack(got.session, true)
	}
	return nil, ctx.Err()
}

// open makes a session for a caller that waits.
func (p *sessions) open() {
	s, err := newSession(p.life, p.client, p.seconds)
	p.mu.Lock()
	p.opening--
	if err != nil {
		if len(p.waiting) > 0 {
			p.waiting[0] <- opened{nil, err}
			p.waiting = p.waiting[1:]
		}
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.giveBack(s, true)
}

// giveBack passes a session on to a caller that waits for one, or keeps it, if nothing is
// left in it. Otherwise it ends the session, which deletes its keys, and waits for that for a
// while.
func (p *sessions) giveBack(s *session, clean bool) {
	if p.keep(s, clean) {
		return
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-p.discard(p.life, s):
	case <-patience.C:
	}
}

// release gives back the session of a lease. If the release was not clean, the session is
// ended in the background; ctx is the caller's.
func (p *sessions) release(ctx context.Context, s *session, clean bool) {
	if p.keep(s, clean) {
		return
	}
	gone := p.discard(ctx, s)
	if clean { // a session for each acquisition is ended by its release
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
}

// keep says whether the session was passed on or kept.
func (p *sessions) keep(s *session, clean bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, s)
	if p.closed || !clean || s.over() {
		return false
	}
	switch {
	case len(p.waiting) > 0 && (p.pooled || s.unused):
		p.used[s] = true
		s.unused = false
		p.waiting[0] <- opened{s, nil}
		p.waiting = p.waiting[1:]
	case p.pooled:
		p.idle = append(p.idle, s)
	default:
		return false
	}
	return true
}

// discard ends a session in the background; after close it does so itself, in the caller's
// time. The channel is closed when that is over.
func (p *sessions) discard(ctx context.Context, s *session) <-chan struct{} {
	gone := make(chan struct{})
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.background.Go(func() {
			defer close(gone)
			s.close(p.life)
		})
	}
	p.mu.Unlock()
	if closed {
		s.close(ctx)
		close(gone)
	}
	return gone
}

// fill makes n idle sessions, if sessions are kept.
func (p *sessions) fill(ctx context.Context, n int) error {
	if !p.pooled {
		return nil
	}
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
			p.giveBack(s, true)
		}
	}
	return err
}

// atOnce is how many sessions are made or ended at a time.
const atOnce = 16

// close ends the idle sessions, and the renewals of those in use. No caller gets a session
// any more.
func (p *sessions) close() {
	p.mu.Lock()
	p.closed = true
	idle, used, waiting := p.idle, p.used, p.waiting
	p.idle, p.used, p.waiting = nil, map[*session]bool{}, nil
	p.mu.Unlock()
	for _, mine := range waiting {
		mine <- opened{nil, strategies.ErrClosed}
	}
	for s := range used {
		s.Orphan()
	}
	late := time.AfterFunc(closing, p.end)
	defer late.Stop()
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, s := range idle {
		all.Go(func() error { s.close(p.life); return nil })
	}
	_ = all.Wait() // what could not be ended ends with its TTL
	p.background.Wait()
	p.end()
}
