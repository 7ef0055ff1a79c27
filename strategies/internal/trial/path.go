package trial

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Path is a process's way to Redis. It can keep back what the process writes, break for the
// process only, and deliver later what it kept back, as a slow network does.
type Path struct {
	mu     sync.Mutex
	held   bool
	onlyTo bool          // what Redis sends is lost
	down   bool          // nothing can be dialled
	stalls chan struct{} // what Redis sends waits until it is closed; nil if nothing waits
	conns  []*conn
}

// conn is one connection on it.
type conn struct {
	net.Conn
	path *Path
	kept []byte

	once   sync.Once
	broken chan struct{}
}

var errDown = errors.New("no way")

// Dial is a redis.UniversalOptions' Dialer.
func (p *Path) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return nil, errDown
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := &conn{Conn: c, path: p, broken: make(chan struct{})}
	p.conns = append(p.conns, one)
	return one, nil
}

// Keep keeps back what is written on the present connections from now on.
func (p *Path) Keep() { p.mu.Lock(); p.held = true; p.mu.Unlock() }

// Mute loses what Redis sends on the present connections.
func (p *Path) Mute() { p.mu.Lock(); p.onlyTo = true; p.mu.Unlock() }

// Stall makes what Redis sends wait, or ends that wait.
func (p *Path) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.stalls = make(chan struct{})
	} else {
		close(p.stalls)
		p.stalls = nil
	}
}

// Block sets whether dials fail.
func (p *Path) Block(down bool) { p.mu.Lock(); p.down = down; p.mu.Unlock() }

// Keeping returns how many bytes are kept back.
func (p *Path) Keeping() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		n += len(c.kept)
	}
	return n
}

// Snap breaks the present connections for the process; new ones work.
func (p *Path) Snap() (late Late) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late, p.conns, p.held, p.onlyTo = p.conns, nil, false, false
	for _, c := range late {
		c.once.Do(func() { close(c.broken) })
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
	return late
}

// HangUp ends the present connections, as the end of a process does.
func (p *Path) HangUp() {
	for _, c := range p.Snap() {
		_ = c.Conn.Close()
	}
}

// Late is connections that have broken for a process, with what was kept back on them.
type Late []*conn

// Deliver sends what was kept back, and returns when Redis has answered it.
func (l Late) Deliver() error {
	var problems []error
	for _, c := range l {
		if len(c.kept) > 0 {
			_, err := c.Conn.Write(c.kept)
			if err == nil {
				_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
				_, err = c.Conn.Read(make([]byte, 1<<16))
			}
			problems = append(problems, err)
		}
		_ = c.Conn.Close()
	}
	return errors.Join(problems...)
}

func (c *conn) Write(b []byte) (int, error) {
	c.path.mu.Lock()
	defer c.path.mu.Unlock()
	select {
	case <-c.broken:
		return 0, net.ErrClosed
	default:
	}
	if c.path.held {
		c.kept = append(c.kept, b...)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// SetReadDeadline is called by the process. It does not touch a broken connection, whose
// deadline is over: otherwise the process would notice the break only after its ReadTimeout.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.path.mu.Lock()
	defer c.path.mu.Unlock()
	select {
	case <-c.broken:
		return net.ErrClosed
	default:
		return c.Conn.SetReadDeadline(t)
	}
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		select {
		case <-c.broken:
			return 0, net.ErrClosed
		default:
		}
		c.path.mu.Lock()
		lost, stalls := c.path.onlyTo, c.path.stalls
		c.path.mu.Unlock()
		if stalls != nil {
			<-stalls
		}
		if err != nil && errors.Is(err, os.ErrDeadlineExceeded) || !lost {
			return n, err
		}
		if err != nil {
			return n, err
		}
	}
}

// Close is called by the process; what was kept back is not lost by it.
func (c *conn) Close() error {
	c.path.mu.Lock()
	kept := len(c.kept)
	c.path.mu.Unlock()
	c.once.Do(func() { close(c.broken) })
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	if kept > 0 {
		return nil
	}
	return c.Conn.Close()
}
