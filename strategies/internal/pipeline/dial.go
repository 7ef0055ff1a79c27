package pipeline

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// dial has go-redis connect and greet the server, and takes the connection over.
func (c *Conn) dial(ctx context.Context, l *line) (*wire, error) {
	type socket struct {
		net.Conn
		keep func() bool // false if ctx has closed it
	}
	var last atomic.Pointer[socket] // go-redis may dial in another goroutine, and for longer than we wait
	credentials := new(credentials)
	made, err := goredis.Dial(l.node, func(o *redis.Options) {
		credentials.subscribe(o)
		o.PoolSize, o.MinIdleConns, o.DialerRetries, o.MaxRetries = 1, 0, 1, -1
		o.Limiter = nil
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		dial := o.Dialer
		if dial == nil {
			dial = redis.NewDialer(o)
		}
		o.Dialer = func(within context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(within, network, addr)
			if err == nil {
				// Because go-redis's greeting does not end with ctx.
				last.Store(&socket{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })})
			}
			return conn, err
		}
	})
	if err != nil {
		return nil, err
	}
	client := made.(*redis.Client) // a node's
	greeted := client.Conn()
	hangUp := func() { _, _, _ = greeted.Close(), client.Close(), credentials.unsubscribe() }
	if err = credentials.err; err == nil {
		err = greeted.Ping(ctx).Err()
	}
	if err == nil && !last.Load().keep() {
		err = ctx.Err()
	}
	if err != nil {
		hangUp()
		return nil, err
	}
	conn := last.Load().Conn
	w := &wire{
		conn: conn, socket: socketOf(conn), timeout: c.timeout, script: c.script,
		tasks: &c.tasks, ended: make(chan struct{}),
		hangUp: func() { _ = conn.Close(); hangUp() }, last: time.Now(),
	}
	_ = conn.SetDeadline(time.Time{}) // go-redis's
	if w.socket == nil {
		w.reading = true
		if !c.tasks.Go(w.readOn) {
			w.hangUp()
			return nil, errClosed
		}
	}
	retire := func() {
		l.wire.CompareAndSwap(w, nil)
		w.retire()
	}
	credentials.changed.Store(&retire)
	return w, nil
}

// credentials of a provider are those that are current when a connection is dialled. When they change it is replaced:
// go-redis would authenticate on it anew, in between commands of ours.
type credentials struct {
	changed atomic.Pointer[func()]
	leave   auth.UnsubscribeFunc
	err     error
}

func (c *credentials) subscribe(o *redis.Options) {
	if o.StreamingCredentialsProvider == nil {
		return
	}
	var now auth.Credentials
	if now, c.leave, c.err = o.StreamingCredentialsProvider.Subscribe(c); c.err == nil {
		o.Username, o.Password = now.BasicAuth()
		o.StreamingCredentialsProvider = nil
	}
}

func (c *credentials) unsubscribe() error {
	if c.leave == nil {
		return nil
	}
	return c.leave()
}

// OnNext is called when they have changed, by some providers also for the first.
func (c *credentials) OnNext(auth.Credentials) {
	if changed := c.changed.Load(); changed != nil {
		(*changed)()
	}
}

// OnError is called when the provider has no new ones. The old ones may still do.
func (*credentials) OnError(error) {}
