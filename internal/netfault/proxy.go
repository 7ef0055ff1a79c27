package netfault

// This file defines Proxies, which forward connections between two processes under a Condition. link.go defines one
// connection through a proxy.

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// Condition is the state of the network for all connections of a proxy. With the zero value, data is forwarded without
// delay.
type Condition struct {
	// Delay is the one-way delay of data. Jitter is the largest amount by which the delay of a piece of data may be
	// shorter or longer.
	Delay, Jitter time.Duration
	// PerByte is the time in ns to send one byte, in each direction.
	PerByte float64
	// Hold holds up data, and the ends of connections, while it is set. Nothing is lost, because TCP would retransmit it.
	Hold bool
	// Reset breaks all connections, including new ones, with a TCP reset.
	Reset bool
}

// Proxies is a set of proxies on the loopback interface. The zero value is empty and ready for use.
type Proxies struct {
	running  sync.WaitGroup
	sleepers pause.Sleepers

	mu     sync.Mutex
	closed bool
	all    []*Proxy
}

// Proxy accepts connections on a port and links each of them with a connection that it dials to the server.
type Proxy struct {
	of       *Proxies
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	life     context.Context // ends with Proxies.Close
	end      context.CancelFunc

	mu      sync.Mutex
	links   map[*link]struct{}
	now     Condition
	changed chan struct{} // closed when the condition changes, or a link falls silent
}

// Listen starts a proxy on a free port of the loopback interface. For each client the proxy calls dial to reach the
// server.
func (s *Proxies) Listen(dial func(context.Context) (net.Conn, error)) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return s.Serve(listener, dial)
}

// Serve starts a proxy for a listener. Proxies.Close closes the proxy and the listener. If s is already closed, Serve
// closes the listener and returns net.ErrClosed.
func (s *Proxies) Serve(listener net.Listener, dial func(context.Context) (net.Conn, error)) (*Proxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = listener.Close()
		return nil, net.ErrClosed
	}
	p := &Proxy{of: s, listener: listener, dial: dial, links: map[*link]struct{}{}, changed: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	s.all = append(s.all, p)
	s.running.Go(p.accept)
	return p, nil
}

// Close closes the proxies and their connections.
func (s *Proxies) Close() {
	s.mu.Lock()
	s.closed = true
	for _, p := range s.all {
		p.close()
	}
	s.mu.Unlock()
	s.running.Wait()
	s.sleepers.Close()
}

func (p *Proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	_ = p.listener.Close()
	for l := range p.links {
		l.hangUp()
	}
}

// Addr returns the host:port at which clients connect to the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// accept links every connection to the proxy with a new connection to the server, until the proxy is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // a temporary error such as EMFILE: if accept gave up, clients could still connect but would hang
			pause.Rest(p.life.Done(), 0)
			continue
		}
		p.of.running.Go(func() {
			server, err := p.dial(p.life)
			if err != nil {
				_ = client.Close()
				return
			}
			p.join(client, server)
		})
	}
}

// join forwards data between two connections in both directions, until one of them ends.
func (p *Proxy) join(client, server net.Conn) {
	l := newLink(p, client, server)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = struct{}{}
	switch {
	case p.life.Err() != nil:
		l.hangUp()
	case p.now.Reset:
		l.reset()
	}
	p.of.running.Go(func() { l.pass(client, server) })
	p.of.running.Go(func() { l.pass(server, client) })
}

// Set changes the condition. The new condition also applies to data that the proxy already holds.
func (p *Proxy) Set(c Condition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = c
	if c.Reset {
		for l := range p.links {
			l.reset()
		}
	}
	p.change()
}

// Silence drops all further data on the current connections. Neither end is notified. New connections work. The
// returned function closes the silent connections.
func (p *Proxy) Silence() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	silenced := slices.Collect(maps.Keys(p.links))
	for _, l := range silenced {
		l.silent = true
	}
	p.change()
	return func() {
		for _, l := range silenced {
			l.close()
		}
	}
}

// change makes all links evaluate the condition again. The caller holds mu.
func (p *Proxy) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// delayed returns the time at which a piece is due. If held is true, the piece must wait until changed is closed.
func (p *Proxy) delayed(l *link, d piece) (due time.Time, held bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due = d.at.Add(p.now.Delay + time.Duration(float64(p.now.Jitter)*d.luck))
	if sending := p.now.PerByte * float64(len(d.data)); sending > 0 {
		if due.Before(d.after) { // the sending of pieces is sequential, but their delays overlap
			due = d.after
		}
		due = due.Add(time.Duration(sending))
	}
	return due, p.now.Hold || l.silent, p.changed
}
