package gozk

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// servers is a zk.HostProvider with the servers of a session in the library's random order. If no server has accepted a
// connection, it pauses before each dial for 20 ms times the number of completed rounds, but for at most a second. The
// library itself would pause for a second after each round.
type servers struct {
	session *Session
	all     []string
	next    int
}

func (s *servers) Init(all []string) error { s.all = all; return nil }
func (s *servers) Len() int                { return len(s.all) }
func (s *servers) Connected()              {}

// Next returns the next server to dial. over is true if the session is over. The library then fails the requests that
// it has not sent, and stops if its connection was closed.
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

// dial is the dialer that the library calls. It fails if the connection is not open after 5 s, or as soon as the
// session is over.
func (s *Session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	s.hangUp() // the library does not close the old connection when a session has expired
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
		if s.life.Err() == nil { // otherwise the end of the session is the cause
			s.problem = err
		}
		return nil, err
	}
	const shortest = time.Second // enough for a busy machine
	s.socket = &socket{Conn: conn, session: s, patience: time.Now().Add(max(s.timeout, shortest))}
	return s.socket, nil
}

// hangUp closes the session's connection, if there is one, without a message to the server.
func (s *Session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.socket != nil {
		_ = s.socket.Close() // usually closed already
	}
}

// socket is a connection that records in its session when the server last sent something, and which timeout the server
// granted. A socket is needed because the library does not report replies to its heartbeats, and waits several timeouts
// for the grant of a session.
type socket struct {
	net.Conn
	session  *Session
	patience time.Time // the deadline for the grant of the session
	grant    []byte    // the first answer's length, the protocol's version and the timeout, 4 bytes each
}

const grantLength = 12

// SetReadDeadline replaces the library's deadline with c.patience until the server has granted the session.
func (c *socket) SetReadDeadline(at time.Time) error {
	if len(c.grant) < grantLength {
		at = c.patience
	}
	return c.Conn.SetReadDeadline(at)
}

// Read records that the server has sent something. The session adopts the timeout that the server grants, because the
// library's heartbeats and the server use that timeout.
func (c *socket) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if missing := grantLength - len(c.grant); missing > 0 {
		c.grant = append(c.grant, b[:min(n, missing)]...)
		if len(c.grant) == grantLength {
			timeout := time.Duration(binary.BigEndian.Uint32(c.grant[8:])) * time.Millisecond
			if timeout > 0 { // otherwise the session has expired
				c.session.timeout = timeout
			}
		}
	}
	c.session.silence.Reset(c.session.timeout)
	return n, err
}
