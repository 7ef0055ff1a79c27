// Package pipeline lets the callers of one Locker share round trips: group commit over the service's own client.
//
// A single caller sends its command at once (direct.go). While four exchanges are under way, further callers queue. The
// next exchange then sends the commands of up to 64 of them in one Pipeline (plan.go). The callers of an exchange share
// one TIME and one run of a script. The connections are those of the client's pool, so go-redis handles TLS,
// credentials, Limiter, hooks, timeouts and failover.
//
// No command is sent twice (NoRetry). A call ends when its context ends, or when Redis has replied to no caller for a
// given time. go-redis continues with a command that was already sent, and Redis may still execute it.
//
// In a cluster each caller sends its command separately, so that a hanging node does not delay callers that use other
// nodes.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

const (
	// mostExchanges is the largest number of concurrent exchanges. Each uses one connection of the pool.
	mostExchanges = 4
	// mostCalls is the largest number of callers in an exchange. An exchange of thousands of callers could take longer
	// than the client's ReadTimeout.
	mostCalls = 64
	// watches is the number of times per duration Conn.most that watch checks for stalled calls.
	watches = 20
)

// Conn sends the commands of one Locker through a client's connections. One round trip may carry the commands of
// several callers.
type Conn struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil without a cluster
	most    time.Duration        // the longest time without any reply, see Dial
	script  string               // the SHA-1 of the script that Run runs
	calls   bounded.Calls
	work    chan *exchange // received by idle goroutines
	closed  chan struct{}
	once    sync.Once // closes closed

	mu       sync.Mutex
	queue    []*call
	under    []*exchange // under way
	batch    int         // the largest number of callers of the next exchange, up to mostCalls
	progress time.Time   // when Redis last replied
	answered time.Time   // the latest beginning of an exchange to which Redis has replied
	watching bool        // a timer calls watch
	direct   direct
}

// call is a caller's request and its result. The request is either a command, which may share a TIME with other calls,
// or a key and an argument for a shared run of the script. The Conn's mutex guards the result.
type call struct {
	command  *redis.Cmd // nil for a run
	timed    bool
	key, arg *string // for a run

	values   context.Context // for the caller's context values, such as its span
	began    time.Time
	exchange *exchange // nil while the call is queued
	over     bool      // the call has its reply or error, or its caller has given up
	reply    any       // the reply to the shared TIME or run; it may be an error
	err      error
	done     chan struct{} // closed when the call is over, unless its caller has given up
}

// exchange is one round trip to Redis with the requests of several calls.
type exchange struct {
	calls []*call
	began time.Time
}

// Dial returns a Conn for a node, without sending a command. The caller must close the Conn. A call returns an error
// when Redis has replied to no caller for the duration most. script is the SHA-1 of the script that Run runs.
func Dial(node goredis.Node, most time.Duration, script string) (*Conn, error) {
	if _, err := goredis.NodeOf(node.Client); err != nil {
		return nil, err
	}
	c := &Conn{
		client: node.Client, most: most, script: script, batch: mostCalls,
		work: make(chan *exchange), closed: make(chan struct{}), direct: newDirect(node.Client),
	}
	c.cluster = node.Cluster()
	return c, nil
}

// Close waits until calls without a reply have ended, for at most two seconds. After Close commands can still be sent,
// so that leases can be released.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.calls.Close()
	return nil
}

// Send sends a command and returns when the command has its result or Redis's error reply. If Send itself returns an
// error, the command has neither. If indeterminate.MayHaveRun is true for that error, Redis may have executed the
// command or may still do so.
//
// If a command is sent after the reply to an earlier command has arrived, Redis executes the earlier command first.
func (c *Conn) Send(ctx context.Context, command *redis.Cmd) error {
	_, err := c.do(ctx, &call{command: command})
	return err
}

// SendTimed sends a command as Send does, and also returns Redis's time in µs. The callers of an exchange share one
// TIME, which Redis executes after all their commands. The time is 0 if the command has an error. If only the reply to
// TIME is missing, SendTimed returns an error although the command was executed. SendTimed must not be used in a
// cluster, where another node may execute TIME.
func (c *Conn) SendTimed(ctx context.Context, command *redis.Cmd) (now int64, err error) {
	reply, err := c.do(ctx, &call{command: command, timed: true})
	if err != nil {
		return 0, err
	}
	if err := command.Err(); err != nil && !errors.Is(err, redis.Nil) {
		return 0, nil
	}
	now, ok := reply.(int64)
	if !ok {
		return 0, bounded.Unanswered(fmt.Errorf("TIME: %v", reply))
	}
	return now, nil
}

// Run runs the script on a key with an argument and returns the script's result for this key, or its error. The callers
// of an exchange share one run: the script gets the keys and arguments of all callers and returns an array of results.
// Run must not be used in a cluster, where the keys may be in different hash slots.
func (c *Conn) Run(ctx context.Context, key, arg *string) (any, error) {
	reply, err := c.do(ctx, &call{key: key, arg: arg})
	if refused, is := reply.(error); is && err == nil {
		return nil, refused
	}
	return reply, err
}

// do executes a call. It returns the reply to the TIME or the script run that the call shares, or nil if it shares
// none.
func (c *Conn) do(ctx context.Context, own *call) (reply any, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.cluster != nil {
		return nil, c.route(ctx, own.command)
	}
	own.values, own.began, own.done = ctx, time.Now(), make(chan struct{})
	c.mu.Lock()
	c.queue = append(c.queue, own)
	if len(c.queue) == 1 && len(c.under) == 0 && c.direct.may(own.timed) {
		e, term := c.next(), c.direct.bounded(ctx, own.began)
		c.mu.Unlock()
		c.start(c.send(term, e))
		if own.err == context.DeadlineExceeded && ctx.Err() == nil { //nolint:errorlint // no connection was free in time
			return c.do(ctx, &call{command: own.command, timed: own.timed, key: own.key, arg: own.arg})
		}
		return own.reply, own.err
	}
	c.start(c.next())
	c.mu.Unlock()
	select {
	case <-own.done:
		return own.reply, own.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case own.over:
	case own.exchange != nil:
		own.over, own.err = true, bounded.Unanswered(context.Cause(ctx))
	default:
		own.over, own.err = true, ctx.Err()
		c.queue = slices.DeleteFunc(c.queue, func(other *call) bool { return other == own })
	}
	return own.reply, own.err
}

// watch ends calls with an error if Redis has replied to no caller for the duration most, because go-redis may wait for
// a reply forever. It also gives up exchanges whose connection is dead, so that other exchanges can begin.
func (c *Conn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	// The connection of an exchange is considered dead if Redis has replied to an exchange that began much later.
	dead := func(e *exchange) bool { return now.Sub(e.began) >= c.most && c.answered.Sub(e.began) >= c.most/2 }
	stalled := func(one *call) bool {
		return now.Sub(one.began) >= c.most && now.Sub(c.progress) >= c.most || one.exchange != nil && dead(one.exchange)
	}
	for _, e := range slices.Clone(c.under) {
		for _, one := range e.calls {
			if stalled(one) {
				one.end(bounded.Unanswered(noAnswer(c.most)))
			}
		}
		if !slices.ContainsFunc(e.calls, func(one *call) bool { return !one.over }) && now.Sub(e.began) >= c.most {
			c.remove(e)
			c.start(c.next())
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(one *call) bool {
		if stalled(one) {
			one.end(indeterminate.NotSent(noAnswer(c.most)))
		}
		return one.over
	})
	if c.watching = len(c.under) > 0; c.watching {
		time.AfterFunc(c.most/watches, c.watch)
	}
}

// end ends a call with err, unless it is over already, and wakes its caller. The Conn's mutex must be locked.
func (one *call) end(err error) {
	if !one.over {
		one.over, one.err = true, err
		close(one.done)
	}
}

// route sends a command in a cluster, where go-redis finds the node by the key.
func (c *Conn) route(ctx context.Context, command *redis.Cmd) error {
	ctx, cancel := context.WithDeadlineCause(ctx, time.Now().Add(c.most), noAnswer(c.most))
	defer cancel()
	words := slices.Clone(command.Args())
	for i, word := range words { // go-redis cannot find the key in a pointer argument
		if text, is := word.(*string); is {
			words[i] = *text
		}
	}
	own := redis.NewCmd(ctx, words...) // a separate command, because the call may outlast its caller
	err := c.calls.Do(ctx, func() error { return c.client.Process(ctx, indeterminate.Once{Cmder: own}) })
	if err = classifyError(err); err != nil && !answered(err) {
		if !indeterminate.MayHaveRun(err) { // another node may have the key by now
			c.cluster.ReloadState(ctx)
		}
		return err
	}
	command.SetVal(own.Val())
	command.SetErr(err)
	return nil
}

// answered reports whether err is an error reply of Redis.
func answered(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

// classifyError returns err if Redis has replied or has certainly not executed the command. Otherwise it returns a
// bounded.Unanswered error, for which indeterminate.MayHaveRun is true. errors.As finds no network error in the
// returned error. If a network error is the cause of the context, it must not be mistaken for an error of the command.
func classifyError(err error) error {
	if err == nil || answered(err) || !indeterminate.MayHaveRun(err) {
		return err
	}
	return bounded.Unanswered(err)
}

func noAnswer(most time.Duration) error {
	return fmt.Errorf("Redis has not replied for %v", most)
}

// start makes another goroutine send the exchange, unless the exchange is nil. It prefers an idle goroutine, whose
// stack has already grown.
func (c *Conn) start(e *exchange) {
	if e == nil {
		return
	}
	select {
	case c.work <- e:
	default:
		c.calls.Go(func() { c.serve(e) })
	}
}

// next takes calls out of the queue and returns them as the next exchange. It returns nil if no calls are queued or if
// mostExchanges are under way.
func (c *Conn) next() *exchange {
	if len(c.queue) == 0 || len(c.under) == mostExchanges {
		return nil
	}
	n := min(len(c.queue), c.batch)
	e := &exchange{slices.Clone(c.queue[:n]), time.Now()}
	c.queue = slices.Delete(c.queue, 0, n)
	for _, one := range e.calls {
		one.exchange = e
	}
	c.under = append(c.under, e)
	if !c.watching {
		c.watching = true
		time.AfterFunc(c.most/watches, c.watch)
	}
	return e
}

func (c *Conn) remove(e *exchange) {
	c.under = slices.DeleteFunc(c.under, func(other *exchange) bool { return other == e })
}

// serve sends exchanges until the Conn is closed. It runs in its own goroutine.
func (c *Conn) serve(e *exchange) {
	for {
		for e != nil {
			e = c.send(context.WithoutCancel(e.calls[0].values), e)
		}
		select {
		case e = <-c.work:
		case <-c.closed:
			return
		}
	}
}

// send sends the commands of an exchange and gives each call its reply. It returns the next exchange, or nil if there
// is none to send yet.
func (c *Conn) send(ctx context.Context, e *exchange) *exchange {
	p := newPlan(c.script, e.calls)
	if len(p.commands) == 1 {
		_ = c.client.Process(ctx, p.commands[0])
	} else {
		pipe := c.client.Pipeline()
		for _, command := range p.commands {
			_ = pipe.Process(ctx, command)
		}
		_, err := pipe.Exec(ctx)
		p.refused(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, heard := time.Now(), p.deliver()
	if heard {
		c.progress = now
		if e.began.After(c.answered) {
			c.answered = e.began
		}
	}
	c.direct.quick = heard && now.Sub(e.began) < soon
	for _, one := range e.calls {
		one.end(one.err)
	}
	// While Redis is slow, exchanges get smaller, so that none takes as long as the ReadTimeout.
	if c.batch = min(2*c.batch, mostCalls); now.Sub(e.began) > c.most/2 {
		c.batch = max(c.batch/4, 1)
	}
	c.remove(e)
	return c.next()
}
