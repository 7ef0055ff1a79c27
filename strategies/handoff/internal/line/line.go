// Package line is one connection to Redis for many callers: their commands are
// pipelined in the order in which they were given, messages arrive on the same
// connection as RESP3 pushes, and whoever dialled it dials it again when it breaks.
//
// It never sends a command twice. What has become of those that were under way when
// the connection broke is for the callers to ask.
package line

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrBroken is the answer to commands that were under way when the connection broke.
var ErrBroken = errors.New("connection broken")

// brief is a connection that stood for no longer: its server may not be fit to serve.
const brief = 100 * time.Millisecond

// Events are what happens on a Line. Its goroutine calls them one after the other;
// they must not block.
type Events interface {
	// Up is called when a connection stands, with its number, from 1: nothing has
	// been sent on it yet but the handshake.
	Up(connection int64)
	// Down is called when a connection has broken, after the commands under way were
	// answered, and when a dial has failed.
	Down(err error)
	// Message is called for a message; payload is valid during the call.
	Message(payload []byte)
	// Flushed is called when the server has lost its data on a connection that stands, if
	// it says so.
	Flushed()
	// Gone is called when the server ends the subscription, as it does when it gives the
	// slot away.
	Gone()
}

// Call hears the answer to a command, on the Line's goroutine; it must not block.
type Call interface{ Answer(Reply) }

// Line is one connection at a time.
type Line struct {
	client    func(context.Context) (*redis.Client, error) // whose options to dial by
	events    Events
	subscribe []string // the command

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	answered atomic.Int64 // replies and pushes read, ever

	mu         sync.Mutex
	started    bool
	conn       net.Conn // nil while there is none
	connection int64    // its number
	out, spare []byte
	due        bool // some of out is not to wait
	writing    bool
	calls      ring
}

// New returns a Line to where that client connects, which is asked anew for each
// dial; subscribe is the command by which it then listens. It dials once started.
func New(client func(context.Context) (*redis.Client, error), events Events, subscribe ...string) *Line {
	ctx, stop := context.WithCancel(context.Background())
	return &Line{client: client, events: events, subscribe: subscribe, ctx: ctx, stop: stop}
}

// Start has it dial, if it has not yet.
func (l *Line) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started && l.ctx.Err() == nil {
		l.started = true
		l.done.Go(l.serve)
	}
}

// Close hangs up.
func (l *Line) Close() {
	l.stop()
	l.Break()
	l.done.Wait()
}

// Break ends the connection; another is dialled.
func (l *Line) Break() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// Put appends a command, to be sent by the next Flush. It says whether there is a
// connection; if not, the call is never answered. A nil call wants no answer.
func (l *Line) Put(call Call, args ...string) bool { return l.put(call, args, true) }

// PutLate is Put of a command that need not go before the next one of Put, or before
// Push is called.
func (l *Line) PutLate(call Call, args ...string) bool { return l.put(call, args, false) }

func (l *Line) put(call Call, args []string, due bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return false
	}
	l.out = write(l.out, args)
	l.calls.push(call)
	l.due = l.due || due
	return true
}

// Push sends what was put, what may be late included.
func (l *Line) Push() {
	l.mu.Lock()
	l.due = true
	l.mu.Unlock()
	l.Flush()
}

// Flush sends what was put, unless all of it may be late. Whoever comes while somebody
// else writes leaves it to them, so that what is put at the same time goes out together.
func (l *Line) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := l.conn; conn != nil && conn == l.conn && !l.writing && l.due && len(l.out) > 0; {
		out := l.out
		l.out, l.writing, l.due = l.spare[:0], true, false
		l.mu.Unlock()
		_, err := conn.Write(out)
		l.mu.Lock()
		l.spare, l.writing = out, false
		if err != nil {
			_ = conn.Close() // the reader sees to it
			return
		}
	}
}

// Progress returns how much has been read, ever, and whether answers are awaited.
func (l *Line) Progress() (answered int64, awaited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered.Load(), l.calls.n > 0
}

// serve dials and reads until the Line is closed.
func (l *Line) serve() {
	for failures := 0; l.ctx.Err() == nil; {
		conn, reader, err := l.dial()
		if err != nil {
			if l.ctx.Err() == nil {
				l.events.Down(err)
				failures++
				l.rest(failures)
			}
			continue
		}
		began := time.Now()
		l.mu.Lock()
		l.conn, l.out, l.calls = conn, l.out[:0], ring{}
		l.connection++
		number := l.connection
		l.mu.Unlock()
		if l.ctx.Err() == nil {
			l.events.Up(number)
			err = l.read(reader)
		}
		l.hangUp(err)
		if time.Since(began) > brief {
			failures = 0
		} else {
			failures++
			l.rest(failures)
		}
	}
}

// hangUp answers what was under way.
func (l *Line) hangUp(err error) {
	l.mu.Lock()
	_ = l.conn.Close()
	l.conn = nil
	calls := l.calls
	l.calls = ring{}
	l.mu.Unlock()
	for calls.n > 0 {
		if call := calls.pop(); call != nil {
			call.Answer(Reply{Kind: '-', Err: ErrBroken})
		}
	}
	if l.ctx.Err() == nil {
		l.events.Down(err)
	}
}

// rest waits longer after each failure, up to a second.
func (l *Line) rest(failures int) {
	timer := time.NewTimer(min(time.Second, 20*time.Millisecond<<min(failures, 6)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

// read hands out answers and messages until the connection breaks.
func (l *Line) read(r *bufio.Reader) error {
	for {
		reply, err := read(r, false)
		if err != nil {
			return err
		}
		l.answered.Add(1)
		if reply.Kind == '>' {
			l.pushed(reply)
			continue
		}
		if call := l.pop(); call != nil {
			call.Answer(reply)
		}
	}
}

func (l *Line) pop() Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls.pop()
}

// pushed takes a message, the end of the subscription or the loss of all data.
func (l *Line) pushed(reply Reply) {
	if reply.flushed() {
		l.events.Flushed()
	}
	if len(reply.Elements) < 3 {
		return
	}
	switch string(reply.Elements[0].Text) {
	case "message", "smessage":
		l.events.Message(reply.Elements[2].Text)
	case "sunsubscribe":
		l.events.Gone()
	}
}
