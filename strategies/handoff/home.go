package handoff

import (
	"context"
	"errors"
	"fmt"
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
	// outage is how long Redis may be out of reach before waiters are told.
	outage = 2 * time.Second
	// keepIdle is how long the state of a lock outlives its last use.
	keepIdle = time.Hour
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
	fault      error         // of it, once it lasts; or a right that is missing
	awake      bool          // the keeper looks again by itself
	lingering  bool          // late is set
	beat       time.Time     // when the last was sent
	beating    int64         // on which connection
	ticket     int64         // the latest
	places     map[string]*place
	parties    map[*party]struct{} // those of whom somebody waits
	locks      map[string]*lock
	debts      map[string]*debt
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
	}
	subscribe := "SUBSCRIBE"
	if publish == "SPUBLISH" {
		subscribe = "SSUBSCRIBE"
	}
	h.line = line.New(client, h, subscribe, h.own())
	return h
}

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
	told := h.connection != 0 && h.beating != 0 && h.line.Put(then(func(line.Reply) { close(gone) }), "DEL", h.own())
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

// live sends a heartbeat if it is time. The caller holds mu.
func (h *home) live(now time.Time) {
	if h.beating == h.connection && now.Sub(h.beat) < beatEvery {
		return
	}
	again := h.beating == h.connection
	h.beat, h.beating = now, h.connection
	connection := h.connection
	h.line.Put(then(func(reply line.Reply) {
		switch {
		case reply.Err != nil && transient(reply.Err):
			h.line.Break()
		case again && reply.Kind == '_':
			// The last one has run out: others have taken this process for dead.
			h.wonder(connection)
		}
	}), "SET", h.own(), strconv.FormatInt(h.connection, 10),
		"PX", strconv.FormatInt(beatLasts.Milliseconds(), 10), "GET")
}

// Up finds everybody who waits a place in the queue, and pays what is owed.
func (h *home) Up(connection int64) {
	h.clock.forget()
	h.mu.Lock()
	h.connection, h.fault = connection, nil
	close(h.change)
	h.change = make(chan struct{})
	for _, s := range scripts() {
		h.line.Put(then(h.loaded), "SCRIPT", "LOAD", s.source)
	}
	sent := time.Now()
	h.run(then(func(reply line.Reply) { h.probed(connection, sent, reply) }), probeScript, h.own()+":probe")
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

// loaded hears whether this process may have Redis know a script.
func (h *home) loaded(reply line.Reply) {
	refusal, ok := errors.AsType[line.Error](reply.Err)
	if ok && !transient(refusal) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.fail(fmt.Errorf("SCRIPT LOAD: %w", refusal))
	}
}

// probed hears whether this process may do what it has to.
func (h *home) probed(connection int64, sent time.Time, reply line.Reply) {
	if reply.Err == nil {
		h.clock.learn(sent, parseAnswer(reply.Text).now)
		return
	}
	if reply.Err == line.ErrBroken { //nolint:errorlint // it is never wrapped
		return
	}
	if transient(reply.Err) {
		h.line.Break()
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !unknown(reply.Err) || h.fault == nil { // else it could not be loaded
		h.fail(reply.Err)
	}
}

// Down has waiters wait for another connection, but not for long.
func (h *home) Down(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connection != 0 {
		h.connection = 0
		h.since = time.Now()
		return
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

// fail tells everybody. The caller holds mu.
func (h *home) fail(err error) {
	h.fault = err
	close(h.change)
	h.change = make(chan struct{})
	for _, p := range h.places {
		h.settle(p, outcome{err: err})
	}
	for g := range h.parties {
		g.fail(err)
	}
}

// Gone has it look for the server that has the slot now.
func (h *home) Gone() { h.line.Break() }

// Message takes a grant.
func (h *home) Message(payload []byte) {
	h.hand(payload)
	h.line.Flush()
}
