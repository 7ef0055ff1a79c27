// Package handoff is a lock that a release hands to the longest waiting, in the same
// script and with a fresh TTL; nobody tries again. DESIGN.md argues why it holds.
//
// The lock is one list: its state, then the queue. An uncontended acquire is one
// EVALSHA (TIME, LRANGE, GET, LSET, PEXPIRE inside), a release another (TIME, LRANGE,
// LSET). Whoever finds it taken is queued by that EVALSHA, or, behind another waiter
// of the process, by a plain RPUSHX; a release that grants adds GET, PUBLISH and LPOP. So
// an acquisition costs two round trips and one message, whatever the number of
// waiters. All of it goes over one connection of the process (RESP3), on which
// grants arrive as pushes; a grant to the releaser's own process comes with the reply.
// In a cluster it is one connection for each hash tag in use.
//
// It guarantees exclusion while a lease is valid, service in the order in which Redis
// took the requests, tokens that grow, and that a dead holder's lock goes to the next
// after the TTL. Dead processes in the queue are skipped at once, stopped ones after
// 3 s; one that stops within these costs one TTL. Who was skipped and lives gets the
// old place back. After a restart of Redis, empty, all waiters queue again; after a
// break of the connection a process asks what became of its own.
//
// What breaks it: a holder that works on past ValidUntil; a failover to a replica that
// had not seen the grant, which may hand the lock out twice (the tokens tell, unless the
// replica had not seen the counter either); a clock of Redis that jumps, by as much as
// it jumps. All processes need the same Prefix. It needs Redis 6.2, for a cluster 7.0,
// and these rights: the commands in the scripts, EVALSHA, SCRIPT LOAD, RPUSHX, SET, DEL,
// SUBSCRIBE, on keys PREFIX* and channels PREFIX* (in a cluster both also {PREFIX*).
package handoff

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

func init() {
	strategies.Register(strategies.Info{
		Name:        "handoff",
		Summary:     "the release gives the lock to the longest waiting and tells its process",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, FIFO: true, Fencing: true},
		Capacity:    1,
		Nodes:       1,
		Persistent:  []string{"{key}" + suffix},
		Connections: strategies.Connections{PerInstance: 1},
	}, Options{}, New)
}

// Options are none.
type Options struct{}

// Locker is one process's side of the lock. It is a strategies.Locker, Trier and
// Preparer.
type Locker struct {
	config strategies.Config
	homes  *homes
}

// New returns a Locker on the first node. It does not talk to Redis yet.
func New(config strategies.Config, _ Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("handoff: %w", err)
	}
	homes, err := newHomes(config)
	if err != nil {
		return nil, fmt.Errorf("handoff: %w", err)
	}
	return &Locker{config, homes}, nil
}

// Prepare connects, and sees that all rights are there.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	if l.homes.cluster == nil {
		keys = []string{""}
	}
	for _, key := range keys {
		h, _, err := l.at(key)
		if err != nil {
			return err
		}
		if err := h.ready(ctx); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	return nil
}

// at is the lock's name and where its waiters are.
func (l *Locker) at(key string) (*home, string, error) {
	name := nameIn(l.config.Key(key), l.homes.cluster != nil)
	h, err := l.homes.of(name)
	return h, name, err
}

// Acquire queues until the lock is handed over or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := l.AcquireBlock(ctx, key, 1)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// AcquireBlock is Acquire that reserves n fencing tokens with the lease, for whoever
// passes it on by itself.
func (l *Locker) AcquireBlock(ctx context.Context, key string, n int64) (*Lease, error) {
	h, name, err := l.at(key)
	if err != nil {
		return nil, err
	}
	lease, err := h.acquire(ctx, name, max(n, 1))
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", name, doubt.Because(ctx, err))
	}
	return lease, nil
}

func (h *home) acquire(ctx context.Context, name string, block int64) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := h.newWaiter(name, block)
	if err != nil {
		return nil, err
	}
	h.line.Flush()
	return h.await(ctx, w)
}

// await returns the lease that a wait ends with. A grant that comes too late is given
// back, and the wait begins anew.
func (h *home) await(ctx context.Context, w *waiter) (*Lease, error) {
	for {
		select {
		case o := <-w.told:
			lease, err := h.taken(o)
			if o.woken {
				h.config.Probe.Wake(lease != nil)
			}
			if lease != nil || err != nil {
				return lease, err
			}
			if w, err = h.newWaiter(w.lock.name, w.block); err != nil {
				return nil, err
			}
			h.line.Flush()
		case <-ctx.Done():
			h.abandon(ctx, w)
			return nil, ctx.Err()
		}
	}
}

// taken is the lease that a wait ended with; none if it came too late to be relied on:
// then it has been given back.
func (h *home) taken(o outcome) (*Lease, error) {
	if o.err != nil {
		return nil, o.err
	}
	if !time.Now().Before(o.until) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.owe(o.grant.id, o.grant.lock, "")
		h.line.Flush()
		return nil, nil //nolint:nilnil // neither is what it means
	}
	held := &Lease{home: h, name: o.grant.lock, id: o.grant.id, fence: o.grant.fence, block: o.grant.block}
	held.until.Set(o.until)
	return held, nil
}

// abandon ends a wait, whatever has become of it meanwhile.
func (h *home) abandon(ctx context.Context, w *waiter) {
	settle, done := doubt.Settle(ctx)
	defer done()
	h.mu.Lock()
	var d *debt
	if h.waiters[w.id] == w {
		sent := w.connection != 0
		h.forget(w)
		if sent {
			d = h.owe(w.id, w.lock.name, w.entry)
		}
	} else if o := <-w.told; o.err == nil { // it was granted just now
		d = h.owe(o.grant.id, o.grant.lock, "")
	}
	h.mu.Unlock()
	h.line.Flush()
	if d != nil {
		select {
		case <-d.paid:
		case <-settle.Done(): // it stays owed
		}
	}
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	h, name, err := l.at(key)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %q: %w", name, err)
	}
	id := h.names.Next()
	l.config.Probe.Attempt()
	c, err := h.do(ctx, acquireScript, name, "try", keep(l.config.TTL), h.entry(id, 0, l.config.TTL, 1))
	if err != nil {
		h.mu.Lock()
		d := h.owe(id, name, "")
		h.mu.Unlock()
		h.line.Flush()
		settle, done := doubt.Settle(ctx)
		defer done()
		if errors.Is(err, ctx.Err()) {
			select {
			case <-d.paid:
			case <-settle.Done():
			}
		}
		return nil, fmt.Errorf("acquire %q: %w", name, doubt.Because(ctx, err))
	}
	if c.answer.status != 'G' {
		return nil, strategies.ErrHeld
	}
	lease, err := h.taken(outcome{grant: c.grant, until: c.sent.Add(c.grant.ttl() - drift(c.grant.ttl()))})
	if lease == nil && err == nil {
		err = strategies.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// Close hangs up. Leases can still be released.
func (l *Locker) Close() error {
	l.homes.close()
	return nil
}
