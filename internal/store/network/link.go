package network

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/workloads"
)

// link is one connection through a proxy.
type link struct {
	route
	network        *Network
	client, server net.Conn
	closed         chan struct{}
	hangUp         func() // closes both ends, once
	silent         bool   // nothing goes through any more; guarded by the network's mu
}

// piece is data that goes on together.
type piece struct {
	data  []byte
	at    time.Time // when it came
	after time.Time // when the piece before it went on
	luck  float64   // from -1 to 1, its share of the jitter
}

const (
	// pieceSize and underWay bound the data that a link keeps.
	pieceSize = 32 << 10
	underWay  = 1024
	// coarse is how late the time package's timers may be. The end of a delay uses the network's sleepers.
	coarse = 5 * time.Millisecond
)

// serve links every connection to a proxy with one to the server, until the proxy is closed.
func (n *Network) serve(r route, proxy net.Listener) {
	for {
		client, err := proxy.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files, at present: otherwise dials would succeed and hang
			pause.Rest(n.life.Done(), 0)
			continue
		}
		n.going.Go(func() {
			var dialer net.Dialer
			server, err := dialer.DialContext(n.life, "tcp", r.addr)
			if err != nil {
				_ = client.Close()
				return
			}
			n.join(r, client, server)
		})
	}
}

// join links two connections.
func (n *Network) join(r route, client, server net.Conn) {
	l := &link{route: r, network: n, client: client, server: server, closed: make(chan struct{})}
	l.hangUp = sync.OnceFunc(func() {
		close(l.closed)
		_, _ = client.Close(), server.Close()
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[l] = struct{}{}
	switch {
	case n.life.Err() != nil:
		l.hangUp()
	case slices.ContainsFunc(n.active, func(f *workloads.Fault) bool { return f.Name == workloads.Reset && l.on(f) }):
		l.reset()
	}
	n.going.Go(func() { l.pass(client, server) })
	n.going.Go(func() { l.pass(server, client) })
}

// reset closes both ends with a TCP reset.
func (l *link) reset() {
	for _, end := range []net.Conn{l.client, l.server} {
		if socket, ok := end.(*net.TCPConn); ok {
			_ = socket.SetLinger(0)
		}
	}
	l.hangUp()
}

func (l *link) close() {
	l.hangUp()
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	delete(l.network.links, l)
}

// pass passes on what one end sends to the other. Pieces do not wait for each other's delays.
func (l *link) pass(from, to net.Conn) {
	defer l.close()
	pieces := make(chan piece, underWay)
	l.network.going.Go(func() { l.read(from, pieces) })
	var last time.Time
	for p := range pieces {
		p.after = last
		if !l.keep(p) {
			return
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
		last = time.Now()
	}
	l.keep(piece{at: time.Now()}) // the faults delay the end of the data too
}

// read reads pieces until there are no more, or the link is closed.
func (l *link) read(from net.Conn, pieces chan<- piece) {
	defer close(pieces)
	buffer := make([]byte, pieceSize)
	for {
		size, err := from.Read(buffer)
		if size > 0 {
			select {
			case pieces <- piece{data: slices.Clone(buffer[:size]), at: time.Now(), luck: 2*rand.Float64() - 1}:
			case <-l.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// keep waits as long as the faults delay a piece. It returns false if the link was closed meanwhile.
func (l *link) keep(p piece) bool {
	for {
		due, held, changed := l.network.delayed(l, p)
		left := time.Until(due)
		if !held && left <= coarse {
			l.network.sleepers.Sleep(nil, left)
			return true
		}
		var almost <-chan time.Time
		if !held {
			almost = time.After(left - coarse)
		}
		select {
		case <-almost:
		case <-changed:
		case <-l.closed:
			return false
		}
	}
}
