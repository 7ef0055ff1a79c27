package audit

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// path is a process's way to Redis. It can keep back what the process writes, break for
// the process only, and deliver what it has kept later, as a slow network does.
type path struct {
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
	path *path
	kept []byte

	once   sync.Once
	broken chan struct{}
}

var errDown = errors.New("no way")

func (p *path) dial(ctx context.Context, network, address string) (net.Conn, error) {
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

// keep has all that is written on the present connections from now on be kept back.
func (p *path) keep() { p.mu.Lock(); p.held = true; p.mu.Unlock() }

// mute has what Redis sends on the present connections be lost.
func (p *path) mute() { p.mu.Lock(); p.onlyTo = true; p.mu.Unlock() }

// stall has what Redis sends wait, or wait no longer.
func (p *path) stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.stalls = make(chan struct{})
	} else {
		close(p.stalls)
		p.stalls = nil
	}
}

// block says that nothing can be dialled.
func (p *path) block(down bool) { p.mu.Lock(); p.down = down; p.mu.Unlock() }

// keeping is how many bytes are kept back.
func (p *path) keeping() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		n += len(c.kept)
	}
	return n
}

// snap breaks the present connections for the process; new ones are whole.
func (p *path) snap() (late []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late, p.conns, p.held, p.onlyTo = p.conns, nil, false, false
	for _, c := range late {
		c.once.Do(func() { close(c.broken) })
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
	return late
}

// hangUp ends the present connections, as the end of a process does.
func (p *path) hangUp() {
	for _, c := range p.snap() {
		_ = c.Conn.Close()
	}
}

// deliver has what was kept back arrive, and returns when Redis has answered it.
func deliver(t *testing.T, late []*conn) {
	t.Helper()
	for _, c := range late {
		if len(c.kept) > 0 {
			if _, err := c.Conn.Write(c.kept); err != nil {
				t.Fatal(err)
			}
			_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := c.Conn.Read(make([]byte, 1<<16)); err != nil {
				t.Fatalf("what came late was not answered: %v", err)
			}
		}
		_ = c.Conn.Close()
	}
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

// Close is the process's; what was kept back is not lost by it.
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

// begin does something in the background that is on its way when begin returns.
func (p *path) begin(t *testing.T, do func() error) (result chan error) {
	t.Helper()
	p.keep()
	result = make(chan error, 1)
	go func() { result <- do() }()
	for end := time.Now().Add(patience); p.keeping() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was sent")
		}
	}
	time.Sleep(20 * time.Millisecond)
	return result
}

// free expects that another process gets the lock soon.
func free(t *testing.T, locker strategies.Locker) strategies.Lease {
	t.Helper()
	return freeKey(t, locker, "key")
}

func freeKey(t *testing.T, locker strategies.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		lease, err := locker.(strategies.Trier).TryAcquire(ctx, key)
		if err == nil {
			return lease
		}
		if ctx.Err() != nil {
			t.Fatalf("the lock is held by nobody, and not free: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// An acquire that arrives after the wait was given up takes the lock for a moment at most,
// and not for the hour that its lease would have lasted.
func TestLateAcquire(t *testing.T) {
	for _, how := range []string{"wait", "try"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t)
				p := new(path)
				locker := open(t, name, server.Addr, p.dial, time.Hour)
				other := open(t, name, server.Addr, nil, time.Hour)
				if err := release(t, acquire(t, locker)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1100 * time.Millisecond) // so that all it has to say goes with the acquire
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := p.begin(t, func() error {
					do := locker.Acquire
					if how == "try" {
						do = locker.(strategies.Trier).TryAcquire
					}
					lease, err := do(ctx, "key")
					if err == nil {
						_ = lease.Release(context.Background())
					}
					return err
				})
				late := p.snap()
				cancel()
				if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("the wait returned %v", err)
				}
				if err := release(t, free(t, other)); err != nil { // what it owed is paid
					t.Fatal(err)
				}
				deliver(t, late)
				_ = release(t, free(t, other))
			})
		})
	}
}

// An extension that arrives late does not undo a later one.
func TestLateExtend(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		p := new(path)
		holder := open(t, name, server.Addr, p.dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		trial.Calm(t, func(times int) string {
			lease := acquire(t, holder)
			defer func() { _ = release(t, lease) }()
			extend := lease.(strategies.Extender).Extend
			short := time.Duration(times) * 500 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := p.begin(t, func() error { return extend(ctx, short) })
			late := p.snap()
			cancel()
			if err := <-done; err == nil {
				return "the extension was sent again"
			}
			if err := extend(t.Context(), 20*time.Minute); err != nil {
				return err.Error()
			}
			deliver(t, late)
			time.Sleep(short + 10*time.Millisecond)
			if _, err := other.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
				t.Errorf("another got the lock: %v, while it was valid for %v", err, time.Until(until(lease)))
			}
			return ""
		})
	})
}

// A release whose answer is lost is asked again: it was one, also when the next owner has
// come and gone.
func TestReleaseAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		p := new(path)
		holder := open(t, name, server.Addr, p.dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		lease := acquire(t, holder)
		p.mute()
		done := make(chan error, 1)
		go func() { done <- lease.Release(context.Background()) }()
		for range 2 {
			if err := release(t, free(t, other)); err != nil {
				t.Fatal(err)
			}
		}
		p.snap()
		if err := <-done; err != nil {
			t.Errorf("a release that was made returned %v", err)
		}
	})
}
