// Package pipeline sends the commands of all callers of a Locker on one connection. Commands
// that callers send at the same time are written and read together, which costs client and
// server fewer system calls. A caller who is alone writes and reads by himself, which costs no
// switch to another goroutine.
//
// Nothing is sent twice, and a caller whose context ends returns at once. Its command cannot be
// withdrawn: Redis still carries it out, so a caller that does not want the result has to undo it.
//
// Client puts such a connection in the place of a go-redis client, for locks and libraries that do not
// know of it.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Conn is such a connection; in a cluster it is one for each node.
type Conn struct {
	node    goredis.Node
	cluster goredis.Client // nil without a cluster
	known   atomic.Bool    // go-redis knows the cluster's servers
	limiter redis.Limiter  // may be nil
	timeout time.Duration  // for an answer, and for a connection
	most    time.Duration  // for a Send
	script  string         // the hash of the one that Run runs
	tasks   background.Group
	wires   sync.WaitGroup  // that have not ended
	life    context.Context // of dials
	stop    context.CancelFunc

	mu     sync.Mutex
	closed bool
	redial time.Time        // when the wires were last replaced
	lines  map[string]*line // by address
}

// line is the way to one server.
type line struct {
	node goredis.Node
	wire atomic.Pointer[wire] // nil until somebody needs it
	last *attempt             // to dial it; the Conn's mutex guards it
}

// attempt is a dial. What it came to may be read once it is over.
type attempt struct {
	over chan struct{}
	at   time.Time
	err  error
}

const (
	// redialAfter limits how often a server that refuses everything is dialled.
	redialAfter = 250 * time.Millisecond
	// The pauses between dials grow from the first to the second.
	firstPause, lastPause = 50 * time.Millisecond, time.Second
	// patience is how long a dial may take at least, with its greeting. It may serve a later caller.
	patience = 3 * time.Second
)

// Dial returns the Conn of a node. It does not talk to Redis yet. The caller closes it. A Send takes no longer than
// most. An answer, and a connection, take no longer than the client's ReadTimeout either. The script is the hash of the
// one that Run runs.
func Dial(node goredis.Node, most time.Duration, script string) (*Conn, error) {
	if _, err := goredis.NodeOf(node.Client); err != nil {
		return nil, err
	}
	c := &Conn{node: node, most: most, script: script, lines: map[string]*line{}}
	c.timeout = 3 * time.Second // go-redis's default
	if t := node.ReadTimeout(); t > 0 {
		c.timeout = t
	}
	c.timeout = min(c.timeout, most)
	c.life, c.stop = context.WithCancel(context.Background())
	switch client := node.Client.(type) {
	case *redis.ClusterClient:
		c.cluster = client
	case *redis.Client:
		c.limiter = client.Options().Limiter
	}
	return c, nil
}

// Redial makes later commands use new connections: a server has said that it is not the right one. The commands
// before are answered on the old ones. It does nothing within a quarter of a second after it has done so.
func (c *Conn) Redial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || time.Since(c.redial) < redialAfter {
		return
	}
	c.redial = time.Now()
	c.retire()
}

// retire lets all wires end once nobody is waiting. The caller has the mutex.
func (c *Conn) retire() {
	for _, l := range c.lines {
		if w := l.wire.Swap(nil); w != nil {
			w.retire()
		}
	}
}

// Close ends the connections after the commands that are on them. The node's own client stays
// open: commands after Close go there, so that leases can still be released.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.retire()
	c.mu.Unlock()
	c.wires.Wait() // also for those that were replaced
	c.stop()
	c.tasks.Close()
	return nil
}

var errClosed = errors.New("the pipeline is closed")

// Send sends a command, and returns when it is answered: it then has its result or error. After an error of Send it
// has none. Send returns one if ctx or the Conn's time ends before, or if the connection breaks: Redis may have carried
// the command out, or may still do so. If ctx had ended before the call, the error is ctx's own; if no connection
// could be made, it is a *net.OpError of a dial; nothing has been sent then.
//
// A command that is sent after an answer comes after what was answered, unless the connection broke.
func (c *Conn) Send(ctx context.Context, command *redis.Cmd) error {
	_, err := c.exchange(ctx, request{command: command})
	return err
}

// SendTimed is Send, and returns Redis's time in µs. Callers whose commands are written together share one TIME: Redis
// reads its clock after all of them, and before SendTimed returns to any. It is 0 if the command has an error. If only
// the time is missing, SendTimed returns an error, although the command was carried out. It is not for a cluster, where
// a command may be answered by another node.
func (c *Conn) SendTimed(ctx context.Context, command *redis.Cmd) (now int64, err error) {
	reply, err := c.exchange(ctx, request{command: command, timed: true})
	if refused := command.Err(); err != nil || refused != nil && !errors.Is(refused, redis.Nil) {
		return 0, err
	}
	now, ok := reply.(int64)
	if !ok {
		// No redis.Error, which would say that the command was not carried out.
		return 0, fmt.Errorf("Redis answered TIME: %v", reply) //nolint:staticcheck // a name
	}
	return now, nil
}

// Run runs the script on a key with an argument, and returns what the script returns for it, or its error. Runs that
// are written together are one: the script has the keys of all, and as many arguments, and returns an array. Run ends
// as Send does; the two strings must not change after it either. It is not for a cluster, where the keys may be of
// different slots.
func (c *Conn) Run(ctx context.Context, key, arg *string) (any, error) {
	reply, err := c.exchange(ctx, request{key: key, arg: arg})
	if refused, is := reply.(error); is && err == nil {
		return nil, refused
	}
	return reply, err
}

// exchange sends a request, and returns the reply to what it shares, which may be an error.
func (c *Conn) exchange(ctx context.Context, r request) (reply any, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.limiter != nil {
		if err := c.limiter.Allow(); err != nil {
			return nil, err
		}
		defer func() { c.limiter.ReportResult(err) }()
	}
	began := time.Now() // the clock is read once where nobody has to wait
	for now := began; ; now = time.Now() {
		l, err := c.line(ctx, r.command)
		var w *wire
		if err == nil {
			ready := c.cluster == nil && l.wire.Load() != nil
			if w, err = c.wire(ctx, began, l, r.command); !ready {
				now = time.Now()
			}
		}
		if errors.Is(err, errClosed) {
			return c.unpiped(ctx, began, r), nil
		}
		if err != nil {
			return nil, err
		}
		if now.Sub(began) > unwatched { // it had to wait for the connection: others on it have more time left
			bound, cancel := c.within(ctx, began, c.most)
			defer cancel()
			ctx = bound
		}
		reply, sent, err := w.send(ctx, r, now)
		switch {
		case !sent:
			l.wire.CompareAndSwap(w, nil)
		case err != nil:
			return nil, unanswered(r.name(), err)
		default:
			if c.cluster != nil {
				c.follow(ctx, began, r.command)
			}
			return reply, nil
		}
	}
}

func (r request) name() string {
	if r.command == nil {
		return "evalsha"
	}
	return r.command.Name()
}

// unpiped sends a request by the node's own client, and returns the reply to what it would have shared.
func (c *Conn) unpiped(ctx context.Context, began time.Time, r request) any {
	words := []any{"time"}
	if r.command != nil {
		if c.process(ctx, began, r.command); !r.timed {
			return nil
		}
	} else {
		words = []any{"evalsha", c.script, 1, r.key, r.arg}
	}
	shared := &call{request: request{timed: r.timed}, sharers: []*call{{done: make(chan error, 1)}}}
	command := redis.NewCmd(ctx, words...)
	if c.process(ctx, began, command); command.Err() != nil {
		return command.Err()
	}
	shared.divide(command.Val())
	return shared.sharers[0].reply
}

// opaque is an error of which errors.Is finds the cause, but errors.As no redis.Error and no *net.OpError: a caller's
// context may have ended with one, and it would say what became of his command.
type opaque struct{ error }

// Is finds the cause, unless it asks for an answer of Redis's.
func (o opaque) Is(target error) bool {
	_, answer := target.(redis.Error) //nolint:errorlint // what errors.Is compares with
	return !answer && errors.Is(o.error, target)
}

func unanswered(name string, err error) error {
	return opaque{fmt.Errorf("no answer to %s: %w", name, err)}
}

// follow sends what a node of a cluster has not carried out, because the key has moved, where it belongs.
func (c *Conn) follow(ctx context.Context, began time.Time, command *redis.Cmd) {
	if err := command.Err(); redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") {
		goredis.ReloadState(ctx, c.cluster)
		c.process(ctx, began, command)
	}
}

// within bounds what a Send does that began then.
func (c *Conn) within(ctx context.Context, began time.Time, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, began.Add(most), noAnswer(most))
}

// undialled is the error of a ctx that has ended before there was a connection.
func undialled(ctx context.Context, err error) error {
	err = fmt.Errorf("%w: %w", context.Cause(ctx), cmp.Or(err, errDialling))
	return &net.OpError{Op: "dial", Net: "redis", Err: opaque{err}}
}

// process has the node's own client send a command, which gets its result or error, until ctx ends: go-redis may not
// look at that.
func (c *Conn) process(ctx context.Context, began time.Time, command *redis.Cmd) {
	ctx, cancel := c.within(ctx, began, c.most)
	defer cancel()
	own := redis.NewCmd(ctx, valuesOf(command.Args())...)
	over := make(chan error, 1)
	go func() { over <- c.node.Client.Process(ctx, indeterminate.Once{Cmder: own}) }()
	select {
	case err := <-over:
		command.SetVal(own.Val())
		command.SetErr(err)
	case <-ctx.Done():
		command.SetErr(unanswered(command.Name(), context.Cause(ctx)))
	}
}

// wire returns the wire of a line, or dials until ctx ends.
func (c *Conn) wire(ctx context.Context, began time.Time, l *line, command *redis.Cmd) (*wire, error) {
	if w := l.wire.Load(); w != nil {
		return w, nil
	}
	wait, cancel := c.within(ctx, began, c.timeout)
	defer cancel()
	for next := firstPause; ; next = min(2*next, lastPause) {
		err := c.connect(wait, l)
		if w := l.wire.Load(); w != nil && err == nil {
			return w, nil
		}
		if _, refused := errors.AsType[redis.Error](err); refused || errors.Is(err, errClosed) {
			return nil, err
		}
		if !pause.Plain(wait.Done(), next) {
			return nil, undialled(wait, err)
		}
		if c.cluster != nil { // another may have the server's slots by now
			goredis.ReloadState(wait, c.cluster)
			if l, err = c.line(wait, command); err != nil {
				return nil, err
			}
		}
	}
}

// line returns the way to the server that has a command's key.
func (c *Conn) line(ctx context.Context, command *redis.Cmd) (*line, error) {
	node, address := c.node, ""
	if c.cluster != nil {
		server, err := c.master(ctx, command)
		if err != nil {
			return nil, err
		}
		node = goredis.Node{Client: server}
		address = node.Addr()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	l := c.lines[address]
	if l == nil {
		l = &line{node: node}
		c.lines[address] = l
	}
	return l, nil
}

// master returns the server of a cluster that has a command's key. At first go-redis asks servers, and may not look at
// ctx.
func (c *Conn) master(ctx context.Context, command *redis.Cmd) (goredis.Client, error) {
	find := func() (goredis.Client, error) {
		server, err := goredis.MasterOf(ctx, c.cluster, keyOf(command.Args()))
		if err != nil {
			return nil, fmt.Errorf("find the node of %s: %w", command.Name(), err)
		}
		c.known.Store(true)
		return server, nil
	}
	if c.known.Load() {
		return find()
	}
	ctx, cancel := c.within(ctx, time.Now(), c.most)
	defer cancel()
	var server goredis.Client
	var err error
	over := make(chan struct{})
	if !c.tasks.Go(func() { defer close(over); server, err = find() }) {
		return nil, errClosed
	}
	select {
	case <-over:
		return server, err
	case <-ctx.Done():
		return nil, undialled(ctx, nil)
	}
}

// keyOf returns the first key of a command.
func keyOf(words []any) string {
	at := 1
	if name, _ := words[0].(string); name == "eval" || name == "evalsha" {
		at = 3
	}
	if len(words) <= at {
		return ""
	}
	return fmt.Sprint(valuesOf(words[at : at+1])...)
}

// valuesOf returns words as go-redis takes them, which does not look for a key behind a pointer.
func valuesOf(words []any) []any {
	words = slices.Clone(words)
	for i, word := range words {
		if text, is := word.(*string); is {
			words[i] = *text
		}
	}
	return words
}

var errDialling = errors.New("it has not connected yet")

// connect waits for an attempt to dial, which all callers share, and begins one if the last is over for long enough.
func (c *Conn) connect(ctx context.Context, l *line) error {
	c.mu.Lock()
	if l.wire.Load() != nil { // since the caller looked; a second one would take its place, and nobody would end it
		c.mu.Unlock()
		return nil
	}
	a := l.last
	if a == nil || a.ended() && (a.err == nil || time.Since(a.at) > firstPause) {
		a = &attempt{over: make(chan struct{})}
		if !c.tasks.Go(func() { c.try(l, a) }) {
			c.mu.Unlock()
			return errClosed
		}
		l.last = a
	}
	c.mu.Unlock()
	select {
	case <-a.over:
		return a.err
	case <-ctx.Done():
		return errDialling
	}
}

func (a *attempt) ended() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

func (c *Conn) try(l *line, a *attempt) {
	ctx, cancel := context.WithTimeout(c.life, max(c.timeout, patience))
	defer cancel()
	w, err := c.dial(ctx, l)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.closed:
		w.retire()
		err = errClosed
	case err == nil:
		l.wire.Store(w)
		c.wires.Go(func() { <-w.ended })
	}
	a.at, a.err = time.Now(), err
	close(a.over)
}
