package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/background"
)

// wire is one connection. Who sends a command writes it himself, together with what others send at that moment. Who is
// alone reads its reply himself, too. Otherwise a goroutine reads, for as long as there are replies to come.
type wire struct {
	conn    net.Conn
	socket  syscall.RawConn // to see whether an idle connection has ended; nil if that cannot be seen
	hangUp  func()
	timeout time.Duration // for a reply
	tasks   *background.Group
	ended   chan struct{} // closed with err

	mu       sync.Mutex
	out      []byte // to be written
	spare    []byte // for out while that is being written
	writing  bool
	waiting  []*call // that have not all their replies, the oldest first
	owed     int     // bytes of their commands
	reading  bool    // somebody does; nobody may be waiting without
	deadline bool    // of the reads is set, to the timeout of who is waiting or earlier
	last     time.Time
	retired  bool // ends once nobody is waiting
	err      error

	in []byte // read, and not parsed; belongs to the reader

	calls sync.Pool // those whose callers have had their replies
}

// call are commands that a caller has sent together.
type call struct {
	commands []*redis.Cmd // empty once their caller has gone
	left     int          // replies to come
	size     int          // bytes
	sent     time.Time
	done     chan error // capacity 1
}

var (
	errRetired = errors.New("the connection was replaced")
	errUnasked = errors.New("Redis has answered what nobody asked")
)

func noAnswer(timeout time.Duration) error {
	return fmt.Errorf("Redis has not answered for %v", timeout) //nolint:staticcheck // a name
}

const (
	// owedMost is how much may wait for replies before a caller no longer writes himself: he could be stuck in it
	// longer than he waits. Sockets hold several times as much.
	owedMost = 16 << 10
	// unwatched is how long a connection may be idle before its end is looked for.
	unwatched = 5 * time.Millisecond
)

// send sends commands and waits for their replies, until ctx ends. sent is false if the wire has ended before.
func (w *wire) send(ctx context.Context, commands []*redis.Cmd) (sent bool, err error) {
	c, _ := w.calls.Get().(*call)
	if c == nil {
		c = &call{done: make(chan error, 1)}
	}
	c.commands, c.left, c.sent = append(c.commands[:0], commands...), len(commands), time.Now()
	w.mu.Lock()
	if w.err == nil && len(w.waiting) == 0 && !w.reading && c.sent.Sub(w.last) > unwatched {
		w.deadline = true // first, because nobody can look at a socket whose deadline is over
		_ = w.conn.SetReadDeadline(c.sent.Add(w.timeout))
		if !quiet(w.socket) {
			w.end(net.ErrClosed)
		}
	}
	if w.err != nil || w.retired {
		w.mu.Unlock()
		return false, nil
	}
	before := len(w.out)
	for _, command := range commands {
		if w.out, err = appendCommand(w.out, command.Args()); err != nil {
			w.out = w.out[:before]
			w.mu.Unlock()
			return true, err
		}
	}
	c.size = len(w.out) - before
	w.owed += c.size
	w.waiting = append(w.waiting, c)
	if !w.deadline {
		w.deadline = true
		_ = w.conn.SetReadDeadline(c.sent.Add(w.timeout))
	}
	w.write()
	alone := !w.reading && w.err == nil && c.left > 0
	w.reading = w.reading || alone
	w.mu.Unlock()
	if alone {
		w.readFor(ctx, c)
	}
	select {
	case err = <-c.done:
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		select {
		case err = <-c.done:
		default:
			c.commands = nil
			return true, context.Cause(ctx)
		}
	}
	w.calls.Put(c)
	return true, err
}

// write sends the queued commands, unless another goroutine is sending. The caller has the mutex.
func (w *wire) write() {
	if w.writing {
		return
	}
	w.writing = true
	if len(w.waiting) > 1 { // the callers whose replies have come together send their next commands together
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	if w.owed <= owedMost && w.err == nil {
		w.writeOnce()
	}
	if len(w.out) > 0 && w.err == nil && w.tasks.Go(w.writeOn) {
		return
	}
	w.writing = false
}

func (w *wire) writeOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.out) > 0 && w.err == nil {
		w.writeOnce()
	}
	w.writing = false
}

// writeOnce gives the mutex away while it writes.
func (w *wire) writeOnce() {
	out := w.out
	w.out = w.spare[:0]
	w.mu.Unlock()
	_, err := w.conn.Write(out)
	w.mu.Lock()
	if w.spare = out; cap(out) > 4*owedMost {
		w.spare = nil
	}
	if err != nil {
		w.end(err)
	}
}

// readFor reads for a caller until he has his replies or ctx ends, and then has a goroutine read for the others.
func (w *wire) readFor(ctx context.Context, c *call) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	for ctx.Err() == nil && w.read(c) {
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = w.err == nil && len(w.waiting) > 0
	if w.reading && !w.tasks.Go(w.readOn) {
		w.end(errRetired)
	}
}

// readOn reads while somebody waits or, where the end of an idle connection is not seen otherwise, until then.
func (w *wire) readOn() {
	for w.read(nil) {
	}
}

// read reads once, and returns false once the call has its replies or, without a call, if there is nothing to read
// for.
func (w *wire) read(c *call) (goOn bool) {
	if cap(w.in)-len(w.in) < 512 {
		w.in = append(make([]byte, 0, max(4096, 2*len(w.in))), w.in...)
	}
	n, err := w.conn.Read(w.in[len(w.in):cap(w.in)])
	w.in = w.in[:len(w.in)+n]
	w.mu.Lock()
	defer w.mu.Unlock()
	taken, wrong := w.deliver(w.in)
	if w.in = append(w.in[:0], w.in[taken:]...); len(w.in) == 0 && cap(w.in) > 4*owedMost {
		w.in = nil // that of a long reply is not kept
	}
	switch {
	case wrong != nil:
		w.end(wrong)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.overdue()
	case err != nil:
		w.end(err)
	}
	if w.retired && len(w.waiting) == 0 {
		w.end(errRetired)
	}
	switch {
	case w.err != nil:
		return false
	case c != nil:
		return c.left > 0
	}
	w.reading = len(w.waiting) > 0 || w.socket == nil
	return w.reading
}

// overdue ends a wire whose oldest call has waited for too long, and else sets the deadline anew: it was that of an
// older call, or of a caller who has gone.
func (w *wire) overdue() {
	w.deadline = len(w.waiting) > 0
	if !w.deadline {
		_ = w.conn.SetReadDeadline(time.Time{})
		return
	}
	end := w.waiting[0].sent.Add(w.timeout)
	if !time.Now().Before(end) {
		w.end(noAnswer(w.timeout))
		return
	}
	_ = w.conn.SetReadDeadline(end)
}

// deliver hands out the replies at the front of what was read, and returns how many bytes they take.
func (w *wire) deliver(in []byte) (taken int, err error) {
	for taken < len(in) {
		value, told, n, err := parse(in[taken:])
		if err != nil || n == 0 {
			return taken, err
		}
		taken += n
		switch {
		case told:
			continue
		case len(w.waiting) == 0:
			return taken, errUnasked
		}
		c := w.waiting[0]
		if n := len(c.commands); n > 0 {
			answer(c.commands[n-c.left], value)
		}
		if c.left--; c.left == 0 {
			w.waiting[0] = nil // which has its results
			w.waiting = w.waiting[1:]
			w.owed -= c.size
			c.done <- nil
		}
	}
	if len(w.waiting) == 0 {
		w.last = time.Now()
	}
	return taken, nil
}

func answer(command *redis.Cmd, value any) {
	switch v := value.(type) {
	case nil:
		command.SetErr(redis.Nil)
	case replyError:
		command.SetErr(v)
	default:
		command.SetVal(v)
	}
}

// retire lets a wire end once nobody is waiting.
func (w *wire) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retired = true
	if len(w.waiting) == 0 {
		w.end(errRetired)
	}
}

// end ends a wire for that reason. The caller has the mutex.
func (w *wire) end(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	close(w.ended)
	if !w.tasks.Go(w.hangUp) {
		w.hangUp()
	}
	for _, c := range w.waiting {
		c.done <- err
	}
	w.waiting = nil
}
