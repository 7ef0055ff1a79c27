package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// own sets the options of both connections. In RESP3 Redis would tell of changes by push
// messages, which go-redis reads only when it reads something else.
func own(o *redis.UniversalOptions) {
	o.Protocol = 2
	// One connection. After as many failed dials as it has places, a pool dials only once a
	// second.
	o.MaxActiveConns, o.PoolSize, o.MinIdleConns, o.PipelinePoolSize = 1, 1000, 0, -1
	o.MaxRetries, o.DialerRetries = -1, 1 // the loops do that
	o.ContextTimeoutEnabled = true
	o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// connected adds a step that is done on each new connection.
func connected(o *redis.UniversalOptions, do func(context.Context, *redis.Conn) error) {
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return do(ctx, conn)
	}
}

// dialHearing returns the client of the connection that hears of changes.
func (t *tracker) dialHearing(node goredis.Node) redis.UniversalClient {
	return node.Dial(func(o *redis.UniversalOptions) {
		own(o)
		connected(o, func(ctx context.Context, conn *redis.Conn) error {
			id, err := conn.ClientID(ctx).Result()
			if err != nil {
				return fmt.Errorf("ask for the connection's id: %w", err)
			}
			t.listener.Store(id)
			return nil
		})
	})
}

// dialLooking returns the client of the connection that looks.
func (t *tracker) dialLooking(node goredis.Node) redis.UniversalClient {
	return node.Dial(func(o *redis.UniversalOptions) {
		own(o)
		o.Dialer = t.watched(o)
		connected(o, func(ctx context.Context, conn *redis.Conn) error {
			return t.redirect(ctx, conn.Process)
		})
	})
}

// redirect has the listener told of changes to what a connection looks at.
func (t *tracker) redirect(ctx context.Context, process func(context.Context, redis.Cmder) error) error {
	listener := t.listener.Load()
	err := process(ctx, redis.NewStatusCmd(ctx, "CLIENT", "TRACKING", "ON", "REDIRECT", listener))
	if err != nil {
		return fmt.Errorf("track changes: %w", err)
	}
	t.target.Store(listener)
	return nil
}

// ask looks at locks, which leaves marks in Redis, and passes on what it finds.
func (t *tracker) ask(names []string) error {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, grace)
	defer cancel()
	if t.target.Load() != t.listener.Load() { // also true where neither is connected
		if err := t.redirect(ctx, t.looking.Process); err != nil {
			return err
		}
	}
	looks := make([]*redis.Cmd, len(names))
	_, err := t.looking.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			looks[i] = pipe.Do(ctx, "PTTL", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, name := range names {
		left, err := looks[i].Int64()
		if err != nil {
			return err
		}
		switch {
		case left == -2: // there is no such key
			t.answered(name, false, 0)
		case left < 0: // it has no TTL: another program has set it
			t.answered(name, true, t.ttl)
		default:
			// 0 means less than a millisecond: wait for one, do not poll without a pause.
			t.answered(name, true, time.Duration(max(left, 1))*time.Millisecond)
		}
	}
	return nil
}

// watched returns a dialer whose connections are read all the time, so that their end is
// noticed at once: Redis forgets the marks of a closed connection without a message, and
// go-redis reads a connection only after it has asked something.
func (t *tracker) watched(o *redis.UniversalOptions) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := o.Dialer
	if dial == nil {
		options := o.Simple()
		options.DialTimeout = cmp.Or(options.DialTimeout, grace)
		dial = redis.NewDialer(options)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		server, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		client, pipe := net.Pipe()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ctx.Err() != nil {
			return nil, errors.Join(context.Cause(t.ctx), server.Close())
		}
		pump := func(to, from net.Conn) {
			// Whichever way it ends, the connection cannot be used any more.
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		}
		t.done.Go(func() { pump(server, pipe) })
		t.done.Go(func() {
			pump(pipe, server)
			t.wantAll()
		})
		return client, nil
	}
}
