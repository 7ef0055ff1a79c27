package servers

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

var _ store.Target = (*Server)(nil)

func TestConnectFillsThePool(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: p.Addr()})
	const pool = 20
	nodes, err := s.Clients(t.Context(), "lockbench:test:clients", pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	node := nodes[0]
	defer node.Client.Close()
	if stats := node.Client.PoolStats(); stats.TotalConns != pool || stats.IdleConns != pool || stats.Timeouts != 0 {
		t.Errorf("pool = %+v, want %d idle connections", stats, pool)
	}
	left, err := s.Leftovers(t.Context(), "mark", "lockbench:test:clients")
	if err != nil || len(left.Connections) != pool {
		t.Errorf("%d connections carry the name, %v; want %d", len(left.Connections), err, pool)
	}
	// A strategy's own clients are made of the same options and count as well.
	before, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := node.Dial(func(*redis.Options) {})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := own.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	after, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := after.Since(before, 0); *d.OtherTraffic != 0 {
		t.Errorf("a client made of the node's options is not counted: %.1f %% foreign", *d.OtherTraffic)
	}
	conn, err := node.Options.Dialer(t.Context(), "tcp", node.Options.Addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, ok := conn.(syscall.Conn); !ok {
		t.Error("go-redis cannot see whether a connection is stale")
	}
}

// A blocking command must outlast a stalled server, but not its context.
func TestStalledServer(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: p.Addr()})
	nodes, err := s.Clients(t.Context(), "lockbench:test:clients", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes[0].Client.Close()
	if err := p.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	resumed := make(chan error, 1)
	timer := time.AfterFunc(3*time.Second, func() { resumed <- p.Resume(t.Context()) })
	defer timer.Stop()
	if err := nodes[0].Client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping over a stall of 3 s: %v", err)
	}
	if err := <-resumed; err != nil {
		t.Error(err)
	}
}

func TestTooManyConnections(t *testing.T) {
	p := process(t, "--maxclients", "10")
	s := open(t, Options{Address: p.Addr()})
	limits, err := s.Limits(t.Context())
	if err != nil || limits.MaxClients != 10 || limits.Connected < 1 {
		t.Errorf("limits = %+v, %v", limits, err)
	}
	_, err = s.Clients(t.Context(), "lockbench:test:clients", 20, nil)
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("20 connections of 10: %v", err)
	}
	// What had been opened is closed again; Redis notices a little later.
	poll.Until(t, "the connections end", func() bool {
		left, err := s.Leftovers(t.Context(), "mark", "lockbench:test:clients")
		return err == nil && len(left.Connections) == 0
	})
}

func TestTenThousandConnections(t *testing.T) {
	s := open(t, Options{Address: "process"})
	limits, err := s.Limits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const pool = 10000
	if limits.MaxClients < pool+10 {
		t.Skipf("the file limit here allows Redis %d connections only", limits.MaxClients)
	}
	nodes, err := s.Clients(t.Context(), "lockbench:test:clients", pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes[0].Client.Close()
	r, err := s.Read(t.Context())
	if err != nil || r.Clients < pool {
		t.Errorf("%d connections, %v; want %d", r.Clients, err, pool)
	}
}
