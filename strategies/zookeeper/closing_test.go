package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
)

// counted is a connection until it is closed.
type counted struct {
	net.Conn
	left   *atomic.Int32
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.left.Add(-1)
	}
	return c.Conn.Close()
}

// A session that comes only after Close is not kept.
func TestCloseWhileASessionIsBeingOpened(t *testing.T) {
	n := node(t)
	dialling, answer, left := make(chan struct{}, 1), make(chan struct{}), new(atomic.Int32)
	n.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialling <- struct{}{}
		<-answer
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		left.Add(1)
		return &counted{Conn: conn, left: left}, nil
	}
	l := open(t, n, 10*time.Second)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Acquire(t.Context(), "key")
		ended <- err
	}()
	<-dialling
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	close(answer)
	if err := <-ended; !errors.Is(err, strategies.ErrClosed) {
		t.Error(err)
	}
	poll.Until(t, "the session ends", func() bool { return left.Load() == 0 })
}
