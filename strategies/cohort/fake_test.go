package cohort

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// server is the lock among processes without Redis: first come, first served, with TTL
// and tokens. Its time is that of the bubble it is in.
type server struct {
	t   *testing.T
	ttl time.Duration

	mu    sync.Mutex
	owner *lease // nil while it is free
	queue []*entry
	token int64 // the last
	lost  int   // how often all that was held has been
	done  counts
}

// counts are the commands that were carried out.
type counts struct{ acquires, requeues, releases, extends int }

type entry struct {
	process *process
	n       int64
	granted chan *lease // capacity 1
}

// process is one's connection to the server, and what goes wrong on it. It is a global.
type process struct {
	*server
	number int

	// Under the server's mutex.
	faults func(command string) fault // what goes wrong with a command
	broken int                        // connections so far
}

// fault is what becomes of a command.
type fault struct {
	lost  bool          // it is not carried out
	mute  bool          // there is no answer
	delay time.Duration // before it is carried out
	slow  time.Duration // after
}

var errFault = errors.New("connection refused")

// lease is a block.
type lease struct {
	process    *process
	first, n   int64
	expiry     time.Time // as the server knows it
	until      time.Time // as the process does
	connection int
	lost       int
}

func newServer(t *testing.T, ttl time.Duration) *server { return &server{t: t, ttl: ttl} }

// process is the next one's.
func (s *server) process(number int) *process {
	return &process{server: s, number: number, faults: noFaults}
}

func noFaults(string) fault { return fault{} }

func (p *process) fault(command string) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults(command)
}

// margin is what clocks may drift.
func (s *server) margin() time.Duration { return s.ttl / 100 }

// run carries a command out, if nothing goes wrong.
func (p *process) run(ctx context.Context, command string, do func()) error {
	f := p.fault(command)
	time.Sleep(f.delay)
	if !f.lost {
		p.mu.Lock()
		do()
		p.mu.Unlock()
	}
	time.Sleep(f.slow)
	switch {
	case !f.mute && !f.lost:
		return nil
	case f.mute:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.ttl / 2): // the connection is given up
		}
	}
	return errFault
}

// grant gives a free lock to the first in the queue.
func (s *server) grant() {
	if s.owner != nil && time.Now().Before(s.owner.expiry) || len(s.queue) == 0 {
		return
	}
	first := s.queue[0]
	s.queue = s.queue[1:]
	now := time.Now()
	s.owner = &lease{
		process: first.process, first: s.token + 1, n: first.n, connection: first.process.broken, lost: s.lost,
		expiry: now.Add(s.ttl), until: now.Add(s.ttl - s.margin()),
	}
	s.token += first.n
	first.granted <- s.owner
	s.check(s.ttl)
}

// check grants a lock whose owner is dead.
func (s *server) check(after time.Duration) {
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.grant()
	})
}

// enqueue is for one entry of a process at a time.
func (p *process) enqueue(n int64) *entry {
	if slices.ContainsFunc(p.queue, func(e *entry) bool { return e.process == p }) {
		p.t.Errorf("process %d is in the queue twice", p.number)
	}
	e := &entry{p, n, make(chan *lease, 1)}
	p.queue = append(p.queue, e)
	p.grant()
	return e
}

func (p *process) acquire(ctx context.Context, _ string, n int64) (block, error) {
	var e *entry
	if err := p.run(ctx, "acquire", func() { e = p.enqueue(n); p.done.acquires++ }); err != nil {
		if e != nil {
			p.leave(e)
		}
		return nil, err
	}
	return p.await(ctx, e)
}

func (p *process) await(ctx context.Context, e *entry) (block, error) {
	select {
	case held := <-e.granted: // even if ctx has ended
		return held, nil
	default:
	}
	select {
	case held := <-e.granted:
		return held, nil
	case <-ctx.Done():
		p.leave(e)
		return nil, ctx.Err()
	}
}

// leave is sure to succeed, as handoff goes on trying.
func (p *process) leave(e *entry) {
	time.Sleep(p.fault("leave").delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case held := <-e.granted:
		held.free()
	default:
		p.queue = slices.DeleteFunc(p.queue, func(other *entry) bool { return other == e })
	}
}

func (p *process) try(ctx context.Context, _ string) (held block, err error) {
	p.mu.Lock()
	free := p.owner == nil && len(p.queue) == 0
	p.mu.Unlock()
	if !free {
		return nil, strategies.ErrHeld
	}
	return p.acquire(ctx, "", 1)
}

func (p *process) Prepare(context.Context, []string) error { return nil }
func (p *process) Close() error                            { return nil }

func (b *lease) Fences() (first, n int64) { return b.first, b.n }
func (b *lease) FencingToken() int64      { return b.first }

func (b *lease) ValidUntil() time.Time {
	b.process.mu.Lock()
	defer b.process.mu.Unlock()
	return b.until
}

func (b *lease) Unbroken() bool {
	b.process.mu.Lock()
	defer b.process.mu.Unlock()
	return b.connection == b.process.broken
}

// owns says whether the lease is there.
func (b *lease) owns() bool { return b.process.owner == b && !time.Now().After(b.expiry) }

// forgotten says whether the server has lost it.
func (b *lease) forgotten() bool {
	b.process.mu.Lock()
	defer b.process.mu.Unlock()
	return b.lost != b.process.lost
}

// free releases it, under the server's mutex.
func (b *lease) free() bool {
	owned := b.owns()
	if b.process.owner == b {
		b.process.owner = nil
	}
	b.process.grant()
	return owned
}

func (b *lease) Release(ctx context.Context) error {
	owned := false
	err := b.process.run(ctx, "release", func() { owned = b.free(); b.process.done.releases++ })
	if err == nil && !owned {
		err = strategies.ErrNotHeld
	}
	return err
}

func (b *lease) Extend(ctx context.Context, ttl time.Duration) error {
	sent, p := time.Now(), b.process
	until := sent.Add(ttl - p.margin())
	owned := false
	p.mu.Lock()
	if until.Before(b.until) {
		b.until = until
	}
	p.mu.Unlock()
	err := p.run(ctx, "extend", func() {
		p.done.extends++
		if owned = b.owns(); owned {
			b.expiry = time.Now().Add(ttl)
			p.check(ttl)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !owned:
		return strategies.ErrNotHeld
	}
	b.until, b.connection = until, p.broken
	return nil
}

func (b *lease) requeue(ctx context.Context, n int64) (wait, error) {
	var e *entry
	p, owned := b.process, false
	err := p.run(ctx, "requeue", func() {
		p.done.requeues++
		e = p.enqueue(n)
		owned = b.free()
	})
	if err != nil {
		if e != nil {
			p.leave(e)
		}
		return nil, err
	}
	if !owned {
		err = strategies.ErrNotHeld
	}
	return func(ctx context.Context) (block, error) { return p.await(ctx, e) }, err
}

// forget has the server lose what it holds; those who wait queue again in any order, as
// handoff has them do.
func (s *server) forget(processes ...*process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = nil
	s.lost++
	for _, p := range processes {
		p.broken++
	}
	rand.Shuffle(len(s.queue), func(i, j int) { s.queue[i], s.queue[j] = s.queue[j], s.queue[i] })
	s.grant()
}
