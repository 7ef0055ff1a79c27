package handoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
	"github.com/lockbench/lockbench/strategies/internal/owner"
)

const (
	// beatEvery is how often a process with waiters tells that it lives; grants skip one
	// that has not for beatLasts.
	beatEvery = time.Second
	beatLasts = 3 * time.Second
	// lateFor is how late a command may come from a connection that has broken and still
	// be known as such.
	lateFor = 10 * time.Minute
	// outage is how long Redis may be out of reach before waiters are told.
	outage = 2 * time.Second
	// keepIdle is how long the state of a lock outlives its last use.
	keepIdle = time.Hour
	// longest is how long a lease may last, so that nothing overflows.
	longest = 100 * 365 * 24 * time.Hour
)

// home is where a process's waiters for the locks of one server are, or of one hash
// slot of a cluster: one connection, on which they queue and are told.
type home struct {
	config  strategies.Config
	base    string // of the channels and heartbeats of all processes
	publish string // PUBLISH or SPUBLISH
	names   *owner.Names
	process string
	line    *line.Line
	clock   clock
	linger  time.Duration // half of what order may slip by: one process's request lingers, another's place is joined
	late    *time.Timer   // when what lingers is sent
	stop    context.CancelFunc
	ctx     context.Context
	done    sync.WaitGroup
	nudge   chan struct{} // that the keeper has to look; capacity 1

	mu         sync.Mutex
	started    bool
	closed     bool
	connection int64         // its number, 0 while there is none
	change     chan struct{} // closed when connection changes, or when an outage lasts
	since      time.Time     // of the outage
	sound      bool          // all rights were there on this connection
	fault      error         // of an outage that lasts, or of the last inspection
	reason     error         // why this connection is hung up; nil if it is not
	awake      bool          // the keeper looks again by itself
	lingering  bool          // late is set
	beat       time.Time     // when the last was sent
	beating    int64         // on which connection
	unbeaten   error         // why it was refused; nil if it was not
	ticket     int64         // the latest
	places     map[string]*place
	parties    map[*party]struct{} // those of whom somebody waits
	locks      map[string]*lock
	debts      map[string]*debt
	held       map[string]time.Time // the leases that somebody has, and when they are over
	sweep      int                  // at how many those that are over are removed
}

// lock is one that somebody of this process waits for.
type lock struct {
	name    string
	waiting int       // who wait here
	queued  int       // the places that were queued on this connection
	check   time.Time // when to look whether the lease has run out
	asked   time.Time // when Redis was last asked who is queued
	kept    time.Time // when Redis was last told how long to keep the lock
	turn    time.Time // when somebody of this process last got it
	party   int       // of so many who got it in turn
	turns   int       // so often in a rush
	open    *place    // the latest that others may have joined
}

func newHome(config strategies.Config, options Options, base, publish string, client func(context.Context) (*redis.Client, error)) *home {
	names := owner.New()
	ctx, stop := context.WithCancel(context.Background())
	h := &home{
		config:  config,
		linger:  options.Linger / 2,
		late:    time.NewTimer(never),
		base:    base,
		publish: publish,
		names:   names,
		process: processOf(names.Next()),
		ctx:     ctx,
		stop:    stop,
		nudge:   make(chan struct{}, 1),
		change:  make(chan struct{}),
		places:  map[string]*place{},
		parties: map[*party]struct{}{},
		locks:   map[string]*lock{},
		debts:   map[string]*debt{},
		held:    map[string]time.Time{},
	}
	subscribe := "SUBSCRIBE"
	if publish == "SPUBLISH" {
		subscribe = "SSUBSCRIBE"
	}
	h.line = line.New(client, h, subscribe, h.own())
	return h
}

// latest ends the name of where the number of a process's latest connection is.
const latest = ":at"

// own is the process's channel and heartbeat.
func (h *home) own() string { return h.base + h.process }

// start connects. The caller holds mu.
func (h *home) start() {
	if !h.started && !h.closed {
		h.started = true
		h.since = time.Now()
		h.line.Start()
		h.done.Go(h.keep)
	}
}

// close says that the process is no more, and hangs up.
func (h *home) close() {
	h.mu.Lock()
	h.closed = true
	gone := make(chan struct{})
	told := h.connection != 0 && h.beating != 0 && h.line.Put(then(func(line.Reply) { close(gone) }), "DEL", h.own(), h.own()+latest)
	h.mu.Unlock()
	if told {
		h.line.Flush()
		select {
		case <-gone:
		case <-time.After(time.Second):
		}
	}
	h.stop()
	h.line.Close()
	h.done.Wait()
}

// then is a Call.
type then func(line.Reply)

// Answer calls it.
func (f then) Answer(reply line.Reply) { f(reply) }

// run puts a script. The caller holds mu, and flushes.
func (h *home) run(call line.Call, s *script, lock string, args ...string) bool {
	command := make([]string, 0, 16)
	command = append(command, "EVALSHA", s.Hash(), "1", lock,
		h.base, h.publish, h.process, strconv.FormatInt(h.connection, 10))
	return h.line.Put(call, append(command, args...)...)
}

// hold notes a lease that somebody has until then. The caller holds mu.
func (h *home) hold(id string, until time.Time) {
	if len(h.held) >= h.sweep {
		now := time.Now()
		maps.DeleteFunc(h.held, func(_ string, over time.Time) bool { return now.After(over) })
		h.sweep = 2*len(h.held) + 64
	}
	h.held[id] = until
}

// live sends a heartbeat if it is time. The caller holds mu.
func (h *home) live(now time.Time) {
	if h.beating == h.connection && now.Sub(h.beat) < beatEvery {
		return
	}
	again := h.beating == h.connection
	h.beat, h.beating = now, h.connection
	connection := h.connection
	h.line.Put(then(func(reply line.Reply) {
		h.beaten(reply.Err)
		if reply.Err != nil {
			return
		}
		server, before := digits(reply.Text)
		h.clock.learn(now, time.Now(), server)
		if again && string(before) == "-" {
			// The last one has run out: others have taken this process for dead.
			h.wonder(connection)
		}
	}), "EVALSHA", beatScript.Hash(), "2", h.own(), h.own()+latest, strconv.FormatInt(connection, 10),
		strconv.FormatInt(beatLasts.Milliseconds(), 10), strconv.FormatInt(lateFor.Milliseconds(), 10))
}

// beaten hears what became of a heartbeat. One that was refused is sent again with the
// next command.
func (h *home) beaten(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == line.ErrBroken: //nolint:errorlint // it is never wrapped
	case err == nil:
		h.unbeaten = nil
	case transient(err):
		h.hangUp(err)
	case unknown(err) && h.unbeaten == nil: // once: it may not be allowed to load scripts
		h.unbeaten, h.beat = err, time.Time{}
		h.load(beatScript)
		h.live(time.Now())
		h.line.Flush()
	default:
		h.unbeaten, h.beat = err, time.Time{}
	}
}

// beatAnew has the next command be preceded by a heartbeat, unless Redis refuses it.
func (h *home) beatAnew() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = time.Time{}
	if h.unbeaten != nil && unknown(h.unbeaten) { // it is being sent again
		return nil
	}
	return h.unbeaten
}

// hangUp breaks the connection for an answer of a server that cannot serve now. The
// caller holds mu.
func (h *home) hangUp(reason error) {
	h.reason = reason
	h.line.Break()
}

// Up finds everybody who waits a place in the queue, and pays what is owed. The heartbeat
// goes first: after it nothing of an earlier connection takes a lock.
func (h *home) Up(connection int64) {
	h.clock.forget()
	h.mu.Lock()
	h.connection, h.sound, h.unbeaten, h.reason = connection, false, nil, nil
	close(h.change)
	h.change = make(chan struct{})
	sent := time.Now()
	h.load(beatScript)
	h.live(sent)
	h.inspect(sent)
	for _, d := range h.debts {
		h.pay(d)
	}
	for _, l := range h.locks {
		l.queued = 0
	}
	h.resume(sent, func(w *place) bool { return w.connection != connection })
	h.mu.Unlock()
	h.line.Flush()
}

// inspect has Redis know the scripts, and sees whether this process may do what it has
// to. The keeper repeats it until it may. The caller holds mu, and flushes.
func (h *home) inspect(now time.Time) {
	var refusal error // of a script
	for _, s := range scripts() {
		h.line.Put(then(func(reply line.Reply) {
			if err, ok := asRefusal(reply.Err); ok {
				refusal = fmt.Errorf("SCRIPT LOAD: %w", err)
			}
		}), "SCRIPT", "LOAD", s.source)
	}
	h.run(then(func(reply line.Reply) {
		if reply.Err == nil {
			h.clock.learn(now, time.Now(), parseAnswer(reply.Text).now)
		}
		h.inspected(cmp.Or(refusal, reply.Err))
	}), probeScript, h.own()+":probe")
}

func (h *home) inspected(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == line.ErrBroken: //nolint:errorlint // it is never wrapped
	case err == nil:
		h.sound, h.fault = true, nil
	case transient(err):
		h.hangUp(err)
	default:
		h.fail(err)
		h.wake()
		h.line.Flush()
	}
}

// Down has waiters wait for another connection, but not for long.
func (h *home) Down(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connection != 0 {
		h.connection = 0
		if h.sound {
			h.since, h.sound = time.Now(), false
		}
		err = cmp.Or(h.reason, err)
	}
	_, refused := asRefusal(err)
	if refused || time.Since(h.since) > outage {
		h.fail(err)
	}
}

// asRefusal says whether it is Redis that does not want us.
func asRefusal(err error) (line.Error, bool) {
	refusal, ok := errors.AsType[line.Error](err)
	return refusal, ok && !transient(refusal)
}

// fail tells everybody. What Redis may have heard of those who waited is owed. The caller
// holds mu, and flushes.
func (h *home) fail(err error) {
	h.fault = err
	close(h.change)
	h.change = make(chan struct{})
	for _, p := range h.places {
		h.settle(p, outcome{err: err})
		if p.connection != 0 {
			h.owe(p.id, p.lock.name, p.entry)
		}
	}
	for g := range h.parties {
		g.fail(err)
	}
}

// Gone has it look for the server that has the slot now.
func (h *home) Gone() { h.line.Break() }

// Flushed has everybody ask what is left: Redis has lost its data.
func (h *home) Flushed() { h.line.Break() }

// Message takes a grant.
func (h *home) Message(payload []byte) {
	if connection, text := digits(payload); !h.misled(connection, text) {
		h.hand(text)
	}
	h.line.Flush()
}
