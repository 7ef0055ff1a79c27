package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
)

// A live capture ends by what comes first: its time, its number of lines, or the server's memory. A second connection
// looks at what the server holds for the reader.
const (
	// UsualFor and LongestFor are how long a live capture lasts unless the user says so, and at most.
	UsualFor   = 5 * time.Second
	LongestFor = time.Minute
	// UsualLines are as many commands as a live capture reads unless the user says so.
	UsualLines = 200_000

	mostHeld   = 32 << 20 // bytes that a user's server may hold for the reader
	mostOwn    = 1 << 30  // the same of a server that lockbench started
	guardEvery = 50 * time.Millisecond
	guardWaits = 5 * time.Second // for an answer; a server that gives none is not observed any longer
)

const closed = "the server closed the connection"

// Live limits how long a server is observed.
type Live struct {
	For   time.Duration // 0 is without a limit
	Lines int64         // commands that clients sent and that scripts executed; 0 is without a limit
	Begun func()        // called when MONITOR has begun; may be nil

	held    int64  // the limit of what the server may hold
	reading func() // called before each line; nil but in tests
}

// Watch observes one node by MONITOR until its time is over, it has read enough, or the server holds too much for it.
// When ctx ends it returns what it has read until then. Its own commands are left out.
func Watch(ctx context.Context, at servers.Options, live Live, options Options) (*Document, error) {
	m, err := servers.OpenMonitor(ctx, at)
	if err != nil {
		return nil, err
	}
	if live.held == 0 {
		live.held = mostHeld
	}
	c := newCapture(m, live, newObserver(options))
	if live.Begun != nil {
		live.Begun()
	}
	c.run(ctx)
	d := c.document(options)
	d.Interrupted = ctx.Err() != nil && c.why == ""
	return d, m.Close()
}

// capture reads the MONITOR of a server.
type capture struct {
	monitor  *servers.Monitor
	live     Live
	observer *observer
	scanner  *scanner

	mu    sync.Mutex
	ended bool
	why   string // it stopped before its time; "" otherwise
	cut   bool   // commands of that time are missing, although nothing but the user's limits should end it
}

func newCapture(m *servers.Monitor, live Live, o *observer) *capture {
	s := newScanner(m)
	s.own = []byte(m.Guard())
	return &capture{monitor: m, live: live, observer: o, scanner: s}
}

// document returns what was read, and why that ended.
func (c *capture) document(options Options) *Document {
	d := c.observer.document(c.scanner.counted, options)
	d.Stopped, d.Cut = c.why, c.cut
	return d
}

// run reads until the capture ends. The guard is over when it returns.
func (c *capture) run(ctx context.Context) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var guard sync.WaitGroup
	guard.Go(func() { c.guard(watching) })
	stop := context.AfterFunc(ctx, func() { c.end("", false) })
	if c.live.For > 0 {
		over := time.AfterFunc(c.live.For, func() { c.end("", false) })
		defer over.Stop()
	}
	c.read()
	stop()
	cancel()
	guard.Wait()
}

// read reads the stream until it ends.
func (c *capture) read() {
	for {
		if c.live.reading != nil {
			c.live.reading()
		}
		l, err := c.scanner.next()
		if err != nil {
			why := closed
			if !errors.Is(err, io.EOF) {
				why = err.Error()
			}
			c.end(why, true) // unless it has ended already
			break
		}
		if l.own {
			c.observer.tick(l.at)
			if len(l.args) > 0 && strings.EqualFold(string(l.args[0]), "echo") { // Monitor.Mark
				c.end("", false)
				break
			}
			continue
		}
		c.observer.take(l)
		if c.live.Lines > 0 && c.scanner.commands >= c.live.Lines {
			c.end(fmt.Sprintf("%d commands were read, the limit by --lines", c.live.Lines), false)
			break
		}
	}
	c.observer.flush()
}

// end ends the capture, once: the first reason counts.
func (c *capture) end(why string, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.why, c.cut = true, why, cut
	c.monitor.Stop()
}

// guard looks at what the server holds for the reader, and ends the capture if that is too much or is not known.
func (c *capture) guard(ctx context.Context) {
	ticks := time.NewTicker(guardEvery)
	defer ticks.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, guardWaits)
		held, err := c.monitor.Held(asking)
		if err == nil && held > c.live.held {
			err = c.monitor.Kill(asking)
			if err == nil {
				const kb = 1 << 10
				err = fmt.Errorf("the server held %d KB for this reader, more than %d: it sends faster than the "+
					"reader reads, so lockbench ended MONITOR", held/kb, c.live.held/kb)
			}
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, servers.ErrGone):
			c.end(closed, true)
		case err != nil:
			c.end(err.Error(), true)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
