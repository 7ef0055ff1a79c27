package fair_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// link is a process's way to Redis, which can be cut.
type link struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

var errCut = errors.New("the link is cut")

// through is a node behind the link.
func (l *link) through(t *testing.T, server *redistest.Server) goredis.Node {
	options := *server.Node(t).Options
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil && l.cut {
			err = errors.Join(errCut, conn.Close())
		}
		l.conns = append(l.conns, conn)
		return conn, err
	}
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}
}

// set cuts or mends it.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, conn := range l.conns {
		if cut && conn != nil {
			_ = conn.Close()
		}
	}
}

// Those who give up while Redis is out of reach would stand in the queue as the dead do,
// each for its timeout. Their process lives, and has them leave once it can.
func TestWhoGivesUpInAnOutageLeavesTheQueueAfterIt(t *testing.T) {
	const waiters = 3
	server := redistest.Start(t)
	outside := server.Client(t)
	holder := trial.Start(t, server, "fair", time.Minute)
	lease := holder.Acquire(t, "key")
	var way link
	p := trial.StartOn(t, []goredis.Node{way.through(t, server)}, "fair", time.Minute)
	var waiting []*waiter
	for i := range waiters {
		waiting = append(waiting, enqueue(t, outside, p, i+1))
	}
	way.set(true)
	for _, w := range waiting {
		w.cancel()
		<-w.errors // of the link, or of the cancelled wait
	}
	if n := len(queued(t, outside)); n != waiters {
		t.Fatalf("%d of %d stand in the queue while nobody can leave it", n, waiters)
	}
	way.set(false)
	poll.Until(t, "all have left the queue", func() bool { return len(queued(t, outside))+len(scores(t, outside)) == 0 })
	trial.Release(t, lease)
	trial.Release(t, p.Acquire(t, "key"))
}
