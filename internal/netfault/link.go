package netfault

// This file defines link, one connection through a proxy. Two goroutines serve each direction: read reads pieces of
// data from one end, and pass writes each piece to the other end when it is due.

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// link forwards data between two connections: one from a client to the proxy, and one from the proxy to the server.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	closed         chan struct{}
	hangUp         func() // closes both ends, once
	silent         bool   // drops all data; guarded by the proxy's mu
}

// piece is the data of one read, which is forwarded in one write.
type piece struct {
	data  []byte
	at    time.Time // when it arrived
	after time.Time // when the previous piece was forwarded
	luck  float64   // a random share of the jitter, from -1 to 1
}

const (
	// pieceSize, in bytes, and underWay, in pieces, limit the data that a link holds.
	pieceSize = 32 << 10
	underWay  = 1024
	// coarse is an upper limit for the inaccuracy of the time package's timers. The last part of each delay, at most
	// coarse, uses the more exact pause.Sleepers.
	coarse = 5 * time.Millisecond
)

func newLink(p *Proxy, client, server net.Conn) *link {
	l := &link{proxy: p, client: client, server: server, closed: make(chan struct{})}
	l.hangUp = sync.OnceFunc(func() {
		close(l.closed)
		_, _ = client.Close(), server.Close()
	})
	return l
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
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

// pass forwards the data from one end to the other. The delays of successive pieces overlap.
func (l *link) pass(from, to net.Conn) {
	defer l.close()
	pieces := make(chan piece, underWay)
	l.proxy.of.running.Go(func() { l.read(from, pieces) })
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
	l.keep(piece{at: time.Now()}) // the end of the data is delayed too
}

// read splits the data that arrives into pieces and sends them, with their arrival times, to the channel pieces. It
// ends when the connection ends or the link is closed.
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

// keep waits until the proxy's condition lets the piece pass. It returns false if the link is closed first.
func (l *link) keep(p piece) bool {
	for {
		due, held, changed := l.proxy.delayed(l, p)
		left := time.Until(due)
		if !held && left <= coarse {
			l.proxy.of.sleepers.Sleep(nil, left)
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
