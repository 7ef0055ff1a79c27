// Package pipeline lets the callers of one Locker share round trips: group commit over the service's own client.
//
// A caller that is alone sends its command at once. While four exchanges are under way, further callers queue; the next
// exchange takes up to 64 of them in one Pipeline. The callers of an exchange share one TIME and one run of a script.
// The connections are those of the client's pool, so TLS, credentials, Limiter, hooks, timeouts and failover are the
// library's.
//
// No command is sent twice (NoRetry). A caller returns when its context ends, and after a time in which Redis has
// answered no caller. A command that was sent by then stays with go-redis, and Redis may still carry it out.
//
// In a cluster each caller sends for itself: one node that hangs must not hold up the callers of the others.
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
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

const (
	// mostExchanges is how many exchanges are under way at a time, each on a connection of the pool.
	mostExchanges = 4
	// mostCalls is how many callers share an exchange. Thousands in one would take longer than a ReadTimeout.
	mostCalls = 64
)

// Conn sends the commands of one Locker.
type Conn struct {
	client  goredis.Client
	cluster goredis.Client // nil without a cluster
	most    time.Duration
	script  string // the hash of the script that Run runs
	tasks   background.Group
	calls   bounded.Calls // of a cluster

	mu        sync.Mutex
	queue     []*call
	exchanges []*exchange // under way
	batch     int         // how many callers the next exchange takes, up to mostCalls
	progress  time.Time   // when Redis last answered
	watching  bool        // a timer looks for calls without an answer
}

// request is what a caller sends: a command, perhaps with a share of a TIME, or a share of a run of the script.
type request struct {
	command  *redis.Cmd // nil for a run
	timed    bool
	key, arg *string // of a run
}

// call is a request, and what became of it. The Conn's mutex guards it.
type call struct {
	request
	values context.Context // of the caller, such as its span
	began  time.Time
	sent   bool
	over   bool // it has its reply or error, or its caller has gone
	reply  any  // of what it shares; it may be an error
	err    error
	done   chan struct{} // closed when it is over, unless its caller has gone
}

// exchange is a round trip of some calls.
type exchange struct {
	calls []*call
	began time.Time
}

// Dial returns the Conn of a node. It does not talk to Redis. The caller closes it. Send ends when Redis has answered
// no caller for most. script is the hash of the script that Run runs.
func Dial(node goredis.Node, most time.Duration, script string) (*Conn, error) {
	if _, err := goredis.NodeOf(node.Client); err != nil {
		return nil, err
	}
	c := &Conn{client: node.Client, most: most, script: script, batch: mostCalls}
	if node.Clustered() {
		c.cluster = node.Client
	}
	return c, nil
}

// Close waits for commands without an answer, for two seconds at most. Commands after Close go to the client, so that
// leases can still be released.
func (c *Conn) Close() error {
	c.calls.Close()
	var waits bounded.Calls
	ctx, cancel := context.WithTimeout(context.Background(), c.most)
	defer cancel()
	_ = waits.Do(ctx, func() error { c.tasks.Close(); return nil })
	return nil
}

// Send sends a command, and returns when it is answered: it then has its result or error. After an error of Send it
// has none. An error for which indeterminate.MayHaveRun is true says that Redis may have carried the command out, or
// may still do so.
//
// A command that is sent after an answer comes after what was answered.
func (c *Conn) Send(ctx context.Context, command *redis.Cmd) error {
	_, err := c.do(ctx, request{command: command})
	return err
}

// SendTimed is Send, and returns Redis's time in µs. The callers of an exchange share one TIME: Redis reads its clock
// after all their commands. It is 0 if the command has an error. If only the time is missing, SendTimed returns an
// error, although the command was carried out. It is not for a cluster, where TIME may be another node's.
func (c *Conn) SendTimed(ctx context.Context, command *redis.Cmd) (now int64, err error) {
	reply, err := c.do(ctx, request{command: command, timed: true})
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

// Run runs the script on a key with an argument, and returns what the script returns for it, or its error. The callers
// of an exchange share one run: the script has the keys of all, and as many arguments, and returns an array. It is not
// for a cluster, where the keys may be of different slots.
func (c *Conn) Run(ctx context.Context, key, arg *string) (any, error) {
	reply, err := c.do(ctx, request{key: key, arg: arg})
	if refused, is := reply.(error); is && err == nil {
		return nil, refused
	}
	return reply, err
}

// do carries out a request, and returns the reply to what it shares.
func (c *Conn) do(ctx context.Context, r request) (reply any, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.cluster != nil {
		return nil, c.route(ctx, r.command)
	}
	own := &call{request: r, values: ctx, began: time.Now(), done: make(chan struct{})}
	c.mu.Lock()
	c.queue = append(c.queue, own)
	c.begin()
	c.mu.Unlock()
	select {
	case <-own.done:
		return own.reply, own.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if own.over {
		return own.reply, own.err
	}
	own.over = true
	if own.sent {
		return nil, bounded.Unanswered(context.Cause(ctx))
	}
	c.queue = slices.DeleteFunc(c.queue, func(other *call) bool { return other == own })
	return nil, ctx.Err()
}

// route sends a command of a cluster, where go-redis follows its key.
func (c *Conn) route(ctx context.Context, command *redis.Cmd) error {
	ctx, cancel := context.WithDeadlineCause(ctx, time.Now().Add(c.most), noAnswer(c.most))
	defer cancel()
	words := slices.Clone(command.Args())
	for i, word := range words { // go-redis looks for no key behind a pointer
		if text, is := word.(*string); is {
			words[i] = *text
		}
	}
	own := redis.NewCmd(ctx, words...) // of the call, which may outlast its caller
	err := c.calls.Do(ctx, func() error { return c.client.Process(ctx, indeterminate.Once{Cmder: own}) })
	if err = fate(err); err != nil && !answered(err) {
		if !indeterminate.MayHaveRun(err) { // another node may have the key by now
			goredis.ReloadState(ctx, c.cluster)
		}
		return err
	}
	command.SetVal(own.Val())
	command.SetErr(err)
	return nil
}

// answered says whether err is what Redis said.
func answered(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

// fate is an error of go-redis from which indeterminate.MayHaveRun knows whether the command may have run, and from
// which errors.As finds no network error: a context may have ended with one.
func fate(err error) error {
	if err == nil || answered(err) || !indeterminate.MayHaveRun(err) {
		return err
	}
	return bounded.Unanswered(err)
}

func noAnswer(most time.Duration) error {
	return fmt.Errorf("Redis has not answered for %v", most) //nolint:staticcheck // a name
}

// begin begins an exchange if calls are queued and it is allowed. The caller has the mutex.
func (c *Conn) begin() {
	if len(c.queue) == 0 || len(c.exchanges) == mostExchanges {
		return
	}
	n := min(len(c.queue), c.batch)
	e := &exchange{slices.Clone(c.queue[:n]), time.Now()}
	c.queue = slices.Delete(c.queue, 0, n)
	for _, one := range e.calls {
		one.sent = true
	}
	c.exchanges = append(c.exchanges, e)
	if !c.watching {
		c.watching = true
		time.AfterFunc(c.most/watches, c.watch)
	}
	if !c.tasks.Go(func() { c.exchange(e) }) { // closed
		go c.exchange(e)
	}
}

// exchange sends what its calls want, and gives each its reply.
func (c *Conn) exchange(e *exchange) {
	p := newPlan(c.script, e.calls)
	ctx := context.WithoutCancel(e.calls[0].values)
	if len(p.commands) == 1 {
		_ = c.client.Process(ctx, p.commands[0])
	} else {
		pipe := c.client.Pipeline()
		for _, command := range p.commands {
			_ = pipe.Process(ctx, command)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.deliver() {
		c.progress = time.Now()
	}
	for _, one := range e.calls {
		one.end()
	}
	// A slow Redis gets smaller exchanges, before one takes as long as a ReadTimeout.
	if c.batch = min(2*c.batch, mostCalls); time.Since(e.began) > c.most/2 {
		c.batch = max(c.batch/4, 1)
	}
	c.remove(e)
	c.begin()
}

func (c *Conn) remove(e *exchange) {
	c.exchanges = slices.DeleteFunc(c.exchanges, func(other *exchange) bool { return other == e })
}

// end ends a call for its caller. The Conn's mutex is held.
func (one *call) end() {
	if !one.over {
		one.over = true
		close(one.done)
	}
}

const (
	// watches is how often in the time without an answer that ends a call the Conn looks for such calls.
	watches = 20
	// patience is how many such times an exchange lasts at most while others are answered.
	patience = 5
)

// watch ends calls that wait while Redis answers no caller, and gives up exchanges for others to begin.
func (c *Conn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	stalled := func(since time.Time) bool {
		if c.progress.After(since) {
			since = c.progress
		}
		return now.Sub(since) >= c.most
	}
	fail := func(one *call, err error) {
		if !one.over {
			one.err = err
			one.end()
		}
	}
	for _, e := range slices.Clone(c.exchanges) {
		lasts := stalled(e.began) || now.Sub(e.began) >= patience*c.most
		for _, one := range e.calls {
			if lasts || stalled(one.began) {
				fail(one, bounded.Unanswered(noAnswer(c.most)))
			}
		}
		if lasts { // its connection is dead, and go-redis may wait for it for ever
			c.remove(e)
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(one *call) bool {
		if stalled(one.began) {
			fail(one, indeterminate.NotSent(noAnswer(c.most)))
		}
		return one.over
	})
	for len(c.queue) > 0 && len(c.exchanges) < mostExchanges {
		c.begin()
	}
	if c.watching = len(c.exchanges) > 0; c.watching {
		time.AfterFunc(c.most/watches, c.watch)
	}
}
