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

// A live capture ends when it reaches its time limit or its limit of commands, or when the server's output buffer for
// MONITOR exceeds a limit. A second connection checks the size of that buffer.
const (
	// UsualFor is the default duration of a live capture. LongestFor is the longest duration that a user can choose.
	UsualFor   = 5 * time.Second
	LongestFor = time.Minute
	// UsualLines is the default maximum number of commands of a live capture.
	UsualLines = 200_000

	mostHeld   = 32 << 20 // bytes: limit of the output buffer at a user's server
	mostOwn    = 1 << 30  // bytes: the limit at a server that lockbench started
	guardEvery = 50 * time.Millisecond
	guardWaits = 5 * time.Second // for a reply; if there is none, the capture ends
)

const closed = "the server closed the connection"

// Live has the limits of a live capture.
type Live struct {
	For   time.Duration // 0 means no limit
	Lines int64         // commands of clients and of scripts; 0 means no limit
	Begun func()        // called when MONITOR has begun; may be nil

	held    int64  // limit of the server's output buffer, bytes
	reading func() // called before each line; only tests set it
}

// Watch observes one node by MONITOR until it reaches one of the limits of live. When ctx ends, it returns the figures
// up to then. It leaves out the commands of its own connections.
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

// capture reads the MONITOR stream of a server until it reaches one of its limits, and stores the reason why it ended.
type capture struct {
	monitor  *servers.Monitor
	live     Live
	observer *observer
	scanner  *scanner

	mu    sync.Mutex
	ended bool
	why   string // why it ended before live.For; "" if it did not
	cut   bool   // it ended by a fault, so commands are missing
}

func newCapture(m *servers.Monitor, live Live, o *observer) *capture {
	s := newScanner(m)
	s.own = []byte(m.Guard())
	return &capture{monitor: m, live: live, observer: o, scanner: s}
}

func (c *capture) document(options Options) *Document {
	d := c.observer.document(c.scanner.counted, options)
	d.Stopped, d.Cut = c.why, c.cut
	return d
}

// run reads until the capture ends. When run returns, the guard has ended.
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

// read passes each command to the observer, until the stream ends or it has read as many commands as live.Lines. A
// stream that ends by itself is a fault.
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
			c.end(why, true) // without effect if end has stopped the reader
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
			c.end(fmt.Sprintf("after %d commands, the limit of --lines", c.live.Lines), false)
			break
		}
	}
	c.observer.flush()
}

// end ends the capture. Only the first call has an effect.
func (c *capture) end(why string, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.why, c.cut = true, why, cut
	c.monitor.Stop()
}

// guard checks the server's output buffer for MONITOR every guardEvery. A full buffer can use up the server's memory.
// So guard ends the capture if the buffer exceeds the limit or its size is not known.
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
				err = fmt.Errorf("the server's output buffer for MONITOR grew to %d KB, above the limit of %d KB: the "+
					"server sends faster than lockbench reads, so lockbench ended MONITOR", held/kb, c.live.held/kb)
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
