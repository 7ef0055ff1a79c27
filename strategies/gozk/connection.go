package gozk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"
)

// servers are those of a session, in the library's random order; see zk.HostProvider. If none
// answers, the library pauses for a second; servers pause for less.
type servers struct {
	session *Session
	all     []string
	next    int
}

func (s *servers) Init(all []string) error { s.all = all; return nil }
func (s *servers) Len() int                { return len(s.all) }
func (s *servers) Connected()              {}

// Next returns the next server, and whether the session is over: then the library looks whether
// it was closed.
func (s *servers) Next() (server string, over bool) {
	s.session.mu.Lock()
	rounds := s.session.dials / len(s.all)
	s.session.dials++
	s.session.mu.Unlock()
	if rounds > 0 {
		select {
		case <-time.After(min(time.Duration(rounds)*20*time.Millisecond, time.Second)):
		case <-s.session.life.Done():
		}
	}
	s.next++
	return s.all[s.next%len(s.all)], s.session.life.Err() != nil
}

// dial is the library's dialer.
func (s *Session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	s.hangUp() // the library does not when a session has expired
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.life, 5*time.Second)
	defer cancel()
	dial := s.node.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.life.Err() != nil {
		err = errors.Join(ErrOver, conn.Close())
	}
	if err != nil {
		s.failed(err)
		return nil, err
	}
	s.socket = &greeting{Conn: conn, session: s, began: began}
	return s.socket, nil
}

// failed notes why there is no session. The caller has the mutex.
func (s *Session) failed(err error) {
	if s.life.Err() == nil { // else the session's end is why
		s.problem = err
	}
}

// hangUp closes the connection, if there is one.
func (s *Session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.socket != nil {
		_ = s.socket.Close() // mostly it is closed already
	}
}

// answered notes that the server has answered a request sent at that time.
func (s *Session) answered(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent.After(s.heard) {
		s.heard = sent
	}
}

// greeting is a connection that reads along until the server has granted a session: the library
// does not say for how long, and waits for that for several timeouts.
type greeting struct {
	net.Conn
	session *Session
	began   time.Time
	head    []byte // the answer's length, the protocol's version and the timeout, 4 bytes each
}

func (g *greeting) granted() bool { return len(g.head) == 12 }

func (g *greeting) SetReadDeadline(at time.Time) error {
	if !g.granted() {
		at = g.began.Add(g.session.handshake)
	}
	return g.Conn.SetReadDeadline(at)
}

func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if g.granted() {
		return n, err
	}
	g.head = append(g.head, b[:min(n, 12-len(g.head))]...)
	const longest = 1 << 10
	if length := len(g.head); length >= 4 && binary.BigEndian.Uint32(g.head)-8 > longest {
		err = fmt.Errorf("the server does not speak ZooKeeper's protocol: it said %q", g.head)
	} else if err != nil {
		err = fmt.Errorf("there is no answer to the request for a session: %w", err)
	}
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if err != nil {
		g.session.failed(err)
		return 0, err
	}
	if g.granted() {
		timeout := time.Duration(binary.BigEndian.Uint32(g.head[8:])) * time.Millisecond
		if timeout > 0 { // 0: the session has expired
			g.session.timeout, g.session.heard = timeout, g.began
		}
	}
	return n, nil
}
