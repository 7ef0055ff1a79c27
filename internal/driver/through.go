package driver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// OpenThrough opens a driver whose connections go through the Dialers of the nodes' options, over a proxy for each
// node: what watches, delays or breaks the connections of a lock in this program does so to the driver's. The driver is
// killed when ctx ends.
func OpenThrough(ctx context.Context, v strategies.Variant, c goredis.Config) (strategies.Locker, error) {
	var ways []*proxy
	nodes := c.Nodes
	c.Nodes = nil
	for _, node := range nodes {
		way, err := newProxy(node.DialAs)
		if err != nil {
			return nil, errors.Join(err, hangUp(ways))
		}
		ways = append(ways, way)
		c.Nodes = append(c.Nodes, node.At(way.listener.Addr().String()))
	}
	locker, err := goredis.Open(v, c)
	if err != nil {
		return nil, errors.Join(err, hangUp(ways))
	}
	d := locker.(*Driver)
	return &through{d, ways, context.AfterFunc(ctx, func() { _ = d.fail(context.Cause(ctx)) })}, nil
}

// through is a driver with its proxies.
type through struct {
	*Driver
	ways  []*proxy
	spare func() bool // from being killed
}

// Close ends the driver, then the proxies.
func (t *through) Close() error {
	t.spare()
	return errors.Join(t.Driver.Close(), hangUp(t.ways))
}

func hangUp(ways []*proxy) error {
	var problems []error
	for _, way := range ways {
		problems = append(problems, way.close())
	}
	return errors.Join(problems...)
}

// proxy passes on what comes to a port of this machine.
type proxy struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	ctx      context.Context // ends with the proxy
	end      context.CancelFunc
	running  sync.WaitGroup
}

func newProxy(dial func(context.Context) (net.Conn, error)) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, dial: dial}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.pass(conn) })
		}
	})
	return p, nil
}

// pass passes on what goes over a connection until one of its ends closes it.
func (p *proxy) pass(conn net.Conn) {
	server, err := p.dial(p.ctx)
	if err != nil {
		_ = conn.Close()
		return
	}
	hangUp := func() { _, _ = conn.Close(), server.Close() }
	defer context.AfterFunc(p.ctx, hangUp)()
	p.running.Go(func() {
		defer hangUp()
		_, _ = io.Copy(conn, server)
	})
	defer hangUp()
	_, _ = io.Copy(server, conn)
}

func (p *proxy) close() error {
	p.end()
	err := p.listener.Close()
	p.running.Wait()
	if errors.Is(err, net.ErrClosed) { // by an earlier call
		return nil
	}
	return err
}
