package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	// turn is how long one XREAD blocks.
	turn = time.Second
	// grace is how late Redis may answer before a connection counts as dead.
	grace = 5 * time.Second
)

// reader reads the streams of all locks that a Locker's callers wait for, on one connection,
// and hands out the wake-ups.
//
// The first use starts two goroutines: one reads, and one interrupts it when there is another
// stream to read.
type reader struct {
	commands redis.UniversalClient // the instance's, for CLIENT UNBLOCK
	blocking redis.UniversalClient // with one connection, the reader's own
	id       atomic.Int64          // that connection's
	stop     context.CancelFunc
	ctx      context.Context
	done     sync.WaitGroup

	mu      sync.Mutex
	started bool
	groups  map[string]*group   // of the streams that somebody waits for
	reading map[string]struct{} // the streams of the running XREAD; nil means that none runs
	missing bool                // the running XREAD lacks a stream
	work    chan struct{}       // there is something to read; capacity 1
	nudge   chan struct{}       // a stream is missing; capacity 1
}

func newReader(node goredis.Node) *reader {
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{
		commands: node.Client,
		ctx:      ctx,
		stop:     stop,
		groups:   map[string]*group{},
		work:     make(chan struct{}, 1),
		nudge:    make(chan struct{}, 1),
	}
	r.blocking = node.Dial(func(o *redis.UniversalOptions) {
		// One connection. After as many failed dials as it has places, a pool dials only once a
		// second.
		o.MaxActiveConns, o.PoolSize, o.MinIdleConns, o.PipelinePoolSize = 1, 1000, 0, -1
		o.MaxRetries, o.DialerRetries = -1, 1 // the loop does that
		o.ContextTimeoutEnabled = true
		o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		connected := o.OnConnect
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
			id, err := conn.ClientID(ctx).Result()
			if err != nil {
				return fmt.Errorf("ask for the connection's id: %w", err)
			}
			if connected != nil {
				if err := connected(ctx, conn); err != nil {
					return err
				}
			}
			if r.id.Swap(id) != 0 {
				r.look()
			}
			return nil
		}
	})
	return r
}

// connect opens the connection ahead of the first waiter.
func (r *reader) connect(ctx context.Context) error { return r.blocking.Ping(ctx).Err() }

func (r *reader) close() error {
	r.stop()
	err := r.blocking.Close()
	r.done.Wait()
	return err
}

// start starts the goroutines. The caller holds mu.
func (r *reader) start() {
	if !r.started {
		r.started = true
		r.done.Go(r.receive)
		r.done.Go(r.interrupt)
	}
}

// read has a stream read from now on. The caller holds mu.
func (r *reader) read(stream string) {
	signal := r.work
	if r.reading != nil {
		// An XREAD that still names the stream has an earlier position of it.
		if _, ok := r.reading[stream]; ok {
			return
		}
		r.missing = true
		signal = r.nudge
	}
	select {
	case signal <- struct{}{}:
	default:
	}
}

// receive reads and hands out until the reader is closed. It reads later what is added while
// it does not read, or has no connection.
func (r *reader) receive() {
	for failures := 0; ; {
		streams := r.next()
		if streams == nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, turn+grace)
		entries, err := r.blocking.XRead(ctx, &redis.XReadArgs{Streams: streams, Block: turn}).Result()
		cancel()
		r.deliver(entries)
		switch {
		case err == nil, errors.Is(err, redis.Nil): // it timed out or was interrupted
			failures = 0
		case r.ctx.Err() != nil:
			return
		default:
			if failures++; failures > 1 { // it did not come back at once
				r.outage(err, failures == 2)
				pause.Rest(r.ctx.Done(), failures)
			}
		}
	}
}

// next returns what to read: the streams, then as many ids. It waits until there is a waiter,
// and returns nil when the reader is closed.
func (r *reader) next() []string {
	for r.ctx.Err() == nil {
		if streams := r.wanted(); streams != nil {
			return streams
		}
		select {
		case <-r.work:
		case <-r.ctx.Done():
		}
	}
	return nil
}

func (r *reader) wanted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.groups) == 0 {
		return nil
	}
	r.missing = false
	r.reading = make(map[string]struct{}, len(r.groups))
	streams := make([]string, 0, 2*len(r.groups))
	ids := make([]string, 0, len(r.groups))
	for stream, g := range r.groups {
		r.reading[stream] = struct{}{}
		streams = append(streams, stream)
		ids = append(ids, g.seen.id())
	}
	return append(streams, ids...)
}

// deliver hands out what an XREAD has returned; no XREAD runs then.
func (r *reader) deliver(streams []redis.XStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = nil
	for _, stream := range streams {
		g := r.groups[stream.Stream]
		if g == nil {
			continue // nobody waits any more
		}
		switch news, lost := g.advance(stream.Messages); {
		case lost:
			g.wakeAll(permit{all: true})
		case news:
			g.wakeFirst()
		}
	}
}

// advance follows the stream. It says whether there was anything new, and whether anything
// was lost. A stream that begins anew was deleted while nobody waited, or the server has
// forgotten the waiters; then the next attempt finds that out.
func (g *group) advance(entries []redis.XMessage) (news, lost bool) {
	for _, entry := range entries {
		p := positionOf(entry)
		if !p.after(g.seen) { // before the waiters came
			continue
		}
		lost = lost || p.number != g.seen.number+1 && p.number != 1
		g.seen, news = p, true
	}
	return news, lost
}

// look has one waiter for each lock try: the connection is new, and may be to a server that
// has lost its data.
func (r *reader) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		g.wakeFirst()
	}
}

// outage tells waiters that nothing will be heard for a while: they try once, and give up if
// the server refuses the reads.
func (r *reader) outage(err error, first bool) {
	p := permit{all: true}
	if _, refused := errors.AsType[redis.Error](err); refused {
		p.err = fmt.Errorf("read the wake-ups: %w", err)
	} else if !first {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		g.wakeAll(p)
	}
}

// interrupt ends the running XREAD whenever a stream is missing from it.
func (r *reader) interrupt() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.nudge:
		}
		for r.lacks() {
			ctx, cancel := context.WithTimeout(r.ctx, grace)
			unblocked, err := r.commands.ClientUnblock(ctx, r.id.Load()).Result()
			cancel()
			if err != nil || unblocked == 1 {
				break // without the right to do it the XREAD ends by itself, in a turn
			}
			// It has just returned, or has not begun to block.
			time.Sleep(time.Millisecond)
		}
	}
}

// lacks says whether the running XREAD lacks a stream that it should read.
func (r *reader) lacks() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing && r.reading != nil && r.ctx.Err() == nil
}
