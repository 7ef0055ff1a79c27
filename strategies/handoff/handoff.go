// Package handoff is a lock that a release hands to the next who waits, in the same
// script and with a fresh TTL; nobody tries again. DESIGN.md argues why it holds.
//
// The lock is one list: its state, then the queue. An uncontended acquire is one
// EVALSHA (TIME, LRANGE, GET, LSET, PEXPIRE inside), a release another (TIME, LRANGE,
// LSET). Whoever finds it taken is queued by that EVALSHA, or, behind another waiter
// of the process, by a plain RPUSHX; a release that grants adds GET, PUBLISH and LREM. So
// an acquisition costs two round trips and one message, whatever the number of
// waiters. All of it goes over one connection of the process (RESP3), on which
// grants arrive as pushes; a grant to the releaser's own process comes with the reply.
// In a cluster it is one connection for each hash tag in use.
//
// In a rush, while a process gets turn after turn, those of it who ask soon after each
// other share a place in the queue, and its lease goes from one to the next within the
// process: no command, a token each, as long as half a TTL is left. What it queues goes
// with its next release, in one packet. Order between processes is then kept to within
// Linger (200 ms), order in a process exactly. Linger 0 sends everything at once, each in
// a place of its own.
//
// It guarantees exclusion while a lease is valid, tokens that grow, and that a dead holder's
// lock goes to the next after the TTL. With Linger 0 it also serves in the order in which
// Redis took the requests, but for those of a process that cannot be told at its turn, as
// after a failover. Otherwise it does not: in a rush a request may come late to Redis by
// Linger, and others of other processes be served before it. Dead processes in the queue are skipped at once, stopped ones after
// 3 s; one that stops within these costs one TTL. Who was skipped and lives gets the
// old place back. After a restart of Redis, empty, all waiters queue again; after a
// break of the connection a process asks what became of its own. A failover that loses no
// write makes no second owner, nor does a server that refuses writes; while it does,
// Acquire and Release return its error, and both go on when it ends. What arrives late from a
// connection that has broken, by up to 10 minutes, takes and shortens nothing.
//
// What breaks it: a holder that works on past ValidUntil; Redis's loss of its data, or a
// failover to a replica that had not seen the grant, which may hand the lock out twice (the
// tokens tell, if the new primary's clock is not behind by more than it took); a clock of
// Redis that is set while a lease is valid, by as much as it is set, or while a grant is
// under way, by as much and 3 s at most. All processes need the same Prefix and version. It needs Redis
// 6.2, for a cluster 7.0, and these rights: the commands in the scripts, EVALSHA,
// SCRIPT LOAD, RPUSHX, DEL, SUBSCRIBE, on keys PREFIX* and channels PREFIX* (in a
// cluster both also {PREFIX*). With the right to CLIENT TRACKING too, a process hears at once
// that all data was flushed, and not when it asks next.
package handoff

import (
	"context"
	_ "embed" // the package comment
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

//go:embed handoff.go
var source string

func init() {
	strategies.Register(strategies.Info{
		Name:        "handoff",
		Summary:     "the release gives the lock to the next in the queue and tells its process; order slips by up to linger in a rush",
		Doc:         strategies.PackageComment(source),
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Fencing: true},
		Capacity:    1,
		Nodes:       1,
		Persistent:  []string{"{key}" + suffix},
		Connections: strategies.Connections{PerInstance: 1},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Channels: []string{"{key}"},
			Commands: []string{"time", "lrange", "get", "lset", "pexpire", "rpush", "rpushx", "ltrim", "lindex", "lrem", "linsert", "set", "del", "publish", "subscribe", "evalsha", "script|load", "client|tracking"},
		},
	}, Defaults(), New)
}

// Options are of one process; others may have their own.
type Options struct {
	// Linger is by how much order between processes may slip while turns come in quick
	// succession. For half of it a request that stands behind another of its process may
	// wait to go with the next release, in one packet; for the other half a place that is
	// queued takes others of its process. 0 sends everything at once, and gives everybody
	// a place.
	Linger time.Duration `opt:"linger" help:"by how much order between processes may slip in a rush, for their requests to share a place in the queue; 0 gives each a place"`
}

// Defaults are Options that cost Redis least.
func Defaults() Options { return Options{Linger: 200 * time.Millisecond} }

// Refine says what holds only where nothing lingers.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if info.Claims.FIFO = o.Linger == 0; info.Claims.FIFO {
		info.Summary = "the release gives the lock to the longest waiting and tells its process"
	}
	return info
}

// Validate rejects what cannot be.
func (o Options) Validate() error {
	if o.Linger < 0 {
		return errors.New("linger must not be negative")
	}
	return nil
}

// Locker is one process's side of the lock. It is a strategies.Locker, Trier and
// Preparer.
type Locker struct {
	config strategies.Config
	homes  *homes
}

// New returns a Locker on the first node. It does not talk to Redis yet.
func New(config strategies.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("handoff: %w", err)
	}
	homes, err := newHomes(config, options)
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
	s, err := h.take(name, block)
	if err != nil {
		return nil, err
	}
	h.line.Flush()
	return h.await(ctx, s)
}

// await returns the lease that a wait ends with. A grant that comes too late is given
// back, and the wait begins anew.
func (h *home) await(ctx context.Context, s *seat) (*Lease, error) {
	for {
		select {
		case o := <-s.told:
			lease, err := h.taken(o)
			if o.woken {
				h.config.Probe.Wake(lease != nil)
			}
			if lease != nil || err != nil {
				return lease, err
			}
			if s, err = h.take(s.name, s.block); err != nil {
				return nil, err
			}
			h.line.Flush()
		case <-ctx.Done():
			h.abandon(ctx, s)
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
		h.giveBack(o)
		h.line.Flush()
		return nil, nil //nolint:nilnil // neither is what it means
	}
	held := &Lease{
		home: h, name: o.grant.lock, id: o.grant.id,
		fence: o.grant.fence, block: o.grant.block, connection: o.connection, party: o.party,
	}
	held.until.Set(o.until)
	return held, nil
}

// abandon ends a wait, whatever has become of it meanwhile.
func (h *home) abandon(ctx context.Context, s *seat) {
	h.mu.Lock()
	var d *debt
	if len(s.told) == 0 {
		if p := s.leave(h); p != nil {
			h.forget(p)
			if p.connection != 0 {
				d = h.owe(p.id, s.name, p.entry)
			}
		}
	} else if o := <-s.told; o.err == nil { // it was granted just now
		d = h.giveBack(o)
	}
	h.mu.Unlock()
	h.line.Flush()
	if d != nil {
		d.wait(ctx)
	}
}

// giveBack passes on a lease that nobody has had. The caller holds mu, and flushes.
func (h *home) giveBack(o outcome) *debt {
	if o.party.next(o.until, o.connection) {
		return nil
	}
	return h.owe(o.grant.id, o.grant.lock, "")
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
		if c.unanswered {
			h.mu.Lock()
			d := h.owe(id, name, "")
			h.mu.Unlock()
			h.line.Flush()
			d.wait(ctx)
		}
		return nil, fmt.Errorf("acquire %q: %w", name, doubt.Because(ctx, err))
	}
	if c.answer.status != 'G' {
		return nil, strategies.ErrHeld
	}
	o := outcome{grant: c.grant, until: c.sent.Add(c.grant.ttl() - drift(c.grant.ttl())), connection: c.connection}
	h.mu.Lock()
	h.hold(id, o.until)
	h.mu.Unlock()
	lease, err := h.taken(o)
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
