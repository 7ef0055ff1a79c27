// Package pending repeats releases that Redis has refused or to which it has not replied. Without a repetition the lock
// would stay taken until its TTL expires, although its holder has released it. Redis refuses commands temporarily while
// it is BUSY with a script, LOADING, or short of replicas. A reply is lost when a connection breaks.
package pending

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

const (
	// shortest and longest are the limits of the pause after a round in which a release failed. The pause doubles after
	// each round in which all releases failed.
	shortest, longest = 10 * time.Millisecond, time.Second
	// patience is the longest duration of a round, of a GiveBack and of a Close.
	patience = bounded.Patience
	// grace is how long GiveBack still waits for a reply after its context has ended.
	grace = 100 * time.Millisecond
	// mostAtOnce is the largest number of releases that are sent at the same time. While Redis does not reply, each of
	// them may occupy a connection of the pool.
	mostAtOnce = 8
	// margin is how long a release is repeated beyond the TTL, in case the clock of Redis is slow.
	margin = 10 * time.Second
	// latest is how long after the end of a call its command may still arrive at Redis. The kernel retransmits data even
	// on a connection that go-redis has closed.
	latest = 2 * time.Minute
)

// Release describes how to release a lock that a client may hold in Redis. It must not be copied after its first use.
type Release struct {
	// Send sends the release once. Send is called again until it returns nil or strategies.ErrNotHeld, even while an
	// earlier call is still running. All calls together must have the effect of one release.
	Send func(ctx context.Context) error
	// Asked is closed at the end of a call that got no reply but may have taken the lock; nil means that there is no such
	// call. Redis may execute the call's command after it has replied to a release, so the release is repeated for two
	// minutes.
	Asked <-chan struct{}
	// TTL is the longest time for which Redis may keep the lock, counted from Add or, if it is later, from the closing of
	// Asked. 0 means forever.
	TTL time.Duration

	// Releases.mu guards the following fields.
	pending bool
	end     time.Time // when the lock has certainly expired in Redis; zero if not known

	since   time.Time // an instant after Asked was closed
	answers int       // number of replies to releases that were sent after since
}

// Releases tracks the calls of one Locker and repeats its failed releases. The zero value is ready for use.
type Releases struct {
	Calls bounded.Calls

	mu      sync.Mutex
	list    []*Release
	running bool            // a goroutine repeats the releases in list
	ctx     context.Context // ends when Close gives up; nil before the first release
	stop    context.CancelFunc
	closing chan struct{}
	closed  bool
	tasks   background.Group
}

// over is a closed channel. It is the value of Release.Asked for a call that has already ended.
var over = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// Asked returns the value of the field Release.Asked for a call that returned err. The channel is closed when go-redis
// has finished the call. Asked returns nil if Redis has replied to the call or cannot have received the command.
func Asked(err error) <-chan struct{} {
	if early := bounded.Over(err); early != nil {
		return early
	}
	if indeterminate.MayHaveRun(err) {
		return over
	}
	return nil
}

// Release sends p and returns its error. If ctx ends first, the error wraps ctx's error. After any error except
// strategies.ErrNotHeld, Release makes a goroutine repeat p.
func (r *Releases) Release(ctx context.Context, p *Release) error {
	err := r.Calls.Do(ctx, func() error { return p.Send(ctx) })
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		r.Add(p)
	}
	return err
}

// GiveBack releases a lock that a failed acquire may have taken. It sends p even if ctx has ended, but then waits for
// the reply for at most grace. After an error, or if Asked is set, p is repeated in the background.
func (r *Releases) GiveBack(ctx context.Context, p *Release) {
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-settle.Done():
		}
	})()
	_ = r.Release(settle, p) // after an error p is repeated
	if p.Asked != nil {
		r.Add(p)
	}
}

// Add repeats p in the background until Redis has replied, the lock has expired in Redis, or Close is called. If p is
// already being repeated, or after Close, Add does nothing.
func (r *Releases) Add(p *Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || p.pending {
		return
	}
	if r.ctx == nil {
		r.ctx, r.stop = context.WithCancel(context.Background())
		r.closing = make(chan struct{})
	}
	p.pending, p.end = true, time.Time{}
	r.list = append(r.list, p)
	if !r.running {
		r.running = r.tasks.Go(r.repeat)
	}
}

// Close sends the pending releases once more and waits for them and for all calls, for at most two seconds in total.
func (r *Releases) Close() { r.CloseBy(time.Now().Add(patience)) }

// CloseBy does the same as Close, but returns at the deadline at the latest.
func (r *Releases) CloseBy(deadline time.Time) {
	r.mu.Lock()
	first := !r.closed && r.ctx != nil
	r.closed = true
	r.mu.Unlock()
	if first {
		late := time.AfterFunc(time.Until(deadline), r.stop)
		close(r.closing)
		r.tasks.Close()
		late.Stop()
		r.stop()
	}
	r.Calls.CloseBy(deadline)
}

// repeat sends the releases round by round until none is left.
func (r *Releases) repeat() {
	for pause := shortest; ; {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.closing:
			timer.Stop()
			r.finish()
			return
		}
		switch answered, failed := r.round(); {
		case failed == 0: // no pause, because thousands of releases may be left after an outage
			pause = 0
		case answered > 0:
			pause = shortest
		default:
			pause = min(max(2*pause, shortest), longest)
		}
		r.mu.Lock()
		r.running = len(r.list) > 0
		on := r.running
		r.mu.Unlock()
		if !on {
			return
		}
	}
}

// finish sends the remaining releases in rounds. It returns when none is left, or when every remaining release has been
// sent without a reply.
func (r *Releases) finish() {
	for silent := 0; silent < r.pending() && r.ctx.Err() == nil; {
		answered, failed := r.round()
		if silent += failed; answered > 0 {
			silent = 0
		}
	}
}

func (r *Releases) pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// round sends up to mostAtOnce releases from the head of the list, and returns how many got a reply and how many did
// not. Releases that must be repeated go to the end of the list, because in a cluster their server may be down while
// other servers work.
func (r *Releases) round() (answered, failed int) {
	r.mu.Lock()
	due := r.list[:min(len(r.list), mostAtOnce)]
	r.list = r.list[len(due):]
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var sending sync.WaitGroup
	for _, p := range due {
		sending.Go(func() {
			over, reply := r.send(ctx, p)
			r.mu.Lock()
			defer r.mu.Unlock()
			if reply {
				answered++
			} else {
				failed++
			}
			if p.pending = !over; p.pending {
				r.list = append(r.list, p)
			}
		})
	}
	sending.Wait()
	return answered, failed
}

// send sends a release once. It reports whether the release needs no further tries, and whether Redis has replied.
//
// An acquire without a reply may still be in a socket buffer of Redis, which may read a release on another connection
// first. A reply to a release that was sent after the end of the acquire's call shows that Redis has since read all its
// sockets once, so Redis executes the next release after the acquire. Two replies are therefore needed. If the acquire
// was still in transit when Redis sent the first reply, a later release undoes it, and the lock stays taken for about
// as long as the acquire was delayed.
func (r *Releases) send(ctx context.Context, p *Release) (over, answered bool) {
	asking := false
	answers := 1
	if p.Asked != nil {
		answers = 2
		select {
		case <-p.Asked:
		default:
			asking = true
		}
	}
	if now := time.Now(); !asking {
		if p.since.IsZero() {
			p.since = now
		}
		if p.TTL > 0 && p.end.IsZero() {
			p.end = now.Add(p.TTL + margin)
		}
	}
	err := r.Calls.Do(ctx, func() error { return p.Send(ctx) })
	switch {
	case asking:
		return false, false
	case err == nil || errors.Is(err, strategies.ErrNotHeld):
		if p.answers++; p.answers < answers {
			return false, true
		}
		if age := time.Since(p.since); p.Asked != nil && age < latest {
			time.AfterFunc(max(age, time.Second), func() { r.Add(p) }) // after Close, Add does nothing
		}
		return true, true
	}
	return !p.end.IsZero() && time.Now().After(p.end), false
}
