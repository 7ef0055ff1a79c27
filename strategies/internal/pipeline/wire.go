package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
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
	script  string        // the hash of the one that callers run together
	tasks   *background.Group
	ended   chan struct{} // closed with err

	mu       sync.Mutex
	out      []byte  // to be written
	spare    []byte  // for out while that is being written
	run      *call   // of the script, for those who share it, to be written; nil if none
	runAt    int     // where in out it belongs
	scratch  []byte  // for a run
	joints   []*call // shared ones, to be used again
	timed    []*call // that share a TIME behind out
	writing  bool
	waiting  []*call // for the reply to a command, the oldest first
	written  int     // how many of their commands are on their way
	owed     int     // bytes of their commands
	reading  bool    // somebody does; nobody may be waiting without
	deadline bool    // of the reads is set, to the timeout of who is waiting or earlier
	last     time.Time
	retired  bool // ends once nobody is waiting
	err      error

	in []byte // read, and not parsed; belongs to the reader

	calls sync.Pool // those whose callers have had their replies
}

// request is what a caller sends: a command, perhaps with a share of a TIME, or a share of a run of the script.
type request struct {
	command  *redis.Cmd // nil for a run
	timed    bool
	key, arg *string // of a run
}

// call is a request that has been sent, or what several share.
type call struct {
	request         // without a command once its caller has gone
	reply   any     // to what it shares
	sharers []*call // nil if it is a caller's own
	left    int     // replies to come
	size    int     // bytes
	sent    time.Time
	done    chan error // capacity 1
}

var (
	errRetired = errors.New("the connection was replaced")
	errUnasked = errors.New("Redis has answered what nobody asked")
)

func noAnswer(timeout time.Duration) error {
	return fmt.Errorf("Redis has not answered for %v", timeout) //nolint:staticcheck // a name
}

const (
	// mostRun is how many callers share a run of the script, during which Redis serves nobody else.
	mostRun = 64
	// mostJoints is how many shared calls are kept, to be used again.
	mostJoints = 8
	// owedMost is how much may wait for replies before a caller no longer writes himself: he could be stuck in it
	// longer than he waits. Sockets hold several times as much.
	owedMost = 16 << 10
	// unwatched is how long a connection may be idle before its end is looked for.
	unwatched = 5 * time.Millisecond
)

// send sends a request and waits for its replies, until ctx ends. It returns the one to what it shares, which may be an
// error. sent is false if the wire has ended before.
func (w *wire) send(ctx context.Context, r request, now time.Time) (reply any, sent bool, err error) {
	c, _ := w.calls.Get().(*call)
	if c == nil {
		c = &call{done: make(chan error, 1)}
	}
	c.request, c.reply, c.left, c.sent = r, nil, 1, now
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
		return nil, false, nil
	}
	if err = w.queue(c); err != nil {
		w.mu.Unlock()
		return nil, true, err
	}
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
			c.command = nil
			return nil, true, context.Cause(ctx)
		}
	}
	if reply = c.reply; err == nil { // else end may still look at it
		w.calls.Put(c)
	}
	return reply, true, err
}

// queue adds a call to what is to be written.
func (w *wire) queue(c *call) (err error) {
	if c.key != nil {
		if w.run == nil {
			w.run, w.runAt = w.joint(c.sent), len(w.out)
		}
		w.run.sharers = append(w.run.sharers, c)
		size := len(*c.key) + len(*c.arg) + 16 // with their lengths
		w.run.size += size
		w.owed += size
		if len(w.run.sharers) == mostRun {
			w.appendRun()
		}
		return nil
	}
	before := len(w.out)
	if w.out, err = appendCommand(w.out, c.command.Args()); err != nil {
		w.out = w.out[:before]
		return err
	}
	c.size = len(w.out) - before
	w.owed += c.size
	w.waiting = append(w.waiting, c)
	if c.timed {
		c.left = 2
		w.timed = append(w.timed, c)
	}
	return nil
}

// joint returns a call that others share, which waits from now on.
func (w *wire) joint(sent time.Time) *call {
	var c *call
	if last := len(w.joints) - 1; last >= 0 {
		c, w.joints = w.joints[last], w.joints[:last]
	} else {
		c = &call{sharers: make([]*call, 0, mostRun)}
	}
	c.sent = sent
	w.waiting = append(w.waiting, c)
	return c
}

// appendRun adds a run of the script, in the place of the first who shares it.
func (w *wire) appendRun() {
	all := w.run.sharers
	run := appendHead(w.scratch[:0], '*', 3+2*len(all))
	run = appendBulk(appendBulk(run, "evalsha"), w.script)
	run = appendBulk(run, strconv.Itoa(len(all)))
	for _, c := range all {
		run = appendBulk(run, *c.key)
	}
	for _, c := range all {
		run = appendBulk(run, *c.arg)
	}
	w.out, w.run = slices.Insert(w.out, w.runAt, run...), nil
	if w.scratch = run; cap(run) > 4*owedMost {
		w.scratch = nil
	}
}

// appendTime adds the TIME that calls share.
func (w *wire) appendTime() {
	c := w.joint(w.timed[0].sent)
	c.timed, c.size = true, len(askTime)
	c.sharers, w.timed = w.timed, c.sharers
	w.out = append(w.out, askTime...)
	w.owed += c.size
}

// askTime is the command TIME.
const askTime = "*1\r\n$4\r\ntime\r\n"

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
	if w.unwritten() && w.err == nil && w.tasks.Go(w.writeOn) {
		return
	}
	w.writing = false
}

func (w *wire) writeOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.unwritten() && w.err == nil {
		w.writeOnce()
	}
	w.writing = false
}

func (w *wire) unwritten() bool { return len(w.out) > 0 || w.run != nil }

// writeOnce gives the mutex away while it writes.
func (w *wire) writeOnce() {
	if w.run != nil {
		w.appendRun()
	}
	if len(w.timed) > 0 {
		w.appendTime()
	}
	w.written = len(w.waiting)
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
		case w.written == 0:
			return taken, errUnasked
		}
		w.written--
		c := w.waiting[0]
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
		w.owed -= c.size
		switch {
		case c.sharers != nil:
			c.divide(value)
			clear(c.sharers)
			if len(w.joints) < mostJoints && cap(c.sharers) <= mostRun {
				*c = call{sharers: c.sharers[:0]}
				w.joints = append(w.joints, c)
			}
			continue
		case c.command != nil:
			answer(c.command, value)
		}
		c.took()
	}
	if len(w.waiting) == 0 {
		w.last = time.Now()
	}
	return taken, nil
}

// took counts a reply. After the last one the call is its caller's, who may use it for another.
func (c *call) took() {
	if c.left--; c.left == 0 {
		c.done <- nil
	}
}

// divide gives each sharer his part of a reply: the time in µs, or his own in the array of a run.
func (c *call) divide(value any) {
	all, _ := value.([]any)
	if c.timed {
		if now, ok := micros(all); ok {
			value = now
		}
		all = nil
	}
	for i, sharer := range c.sharers {
		if sharer.reply = value; len(all) == len(c.sharers) {
			sharer.reply = all[i]
		}
		sharer.took()
	}
}

// micros reads the answer to TIME: seconds and microseconds, as strings.
func micros(parts []any) (now int64, ok bool) {
	if len(parts) != 2 {
		return 0, false
	}
	var numbers [2]int64
	for i, part := range parts {
		text, _ := part.(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, false
		}
		numbers[i] = n
	}
	return numbers[0]*1e6 + numbers[1], true
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
		if c.sharers == nil {
			c.done <- err
		}
		for _, sharer := range c.sharers {
			if sharer.left == 1 { // else it is waiting itself, too
				sharer.done <- err
			}
		}
	}
	w.waiting, w.written = nil, 0
}
