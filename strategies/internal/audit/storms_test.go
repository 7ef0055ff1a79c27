package audit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// fewConnections is more than two processes need in two seconds, and far less than what
// they make that connect again after each error.
const fewConnections = 60

// A server that answers with errors is not connected to again and again by those who wait,
// and they are served when it is well.
func TestNoStormOfConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cause{
		"MASTERDOWN": causes["MASTERDOWN"], "READONLY": replica, "OOM": causes["OOM"], "no keys": causes["no keys"],
		"no channels": causes["no channels"], "no scripts": causes["no scripts"],
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t)
				outside := server.Client(t)
				s := newStorm(t, name, server)
				c.begin(t, outside)
				disconnect(t, outside)
				before := info(t, outside, "stats", "total_connections_received")
				time.Sleep(1500 * time.Millisecond)
				s.few(info(t, outside, "stats", "total_connections_received") - before)
				c.relieve(t, outside)
				s.over()
			})
		})
	}
}

// So it is with one that loads its data.
func TestNoStormWhileLoading(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		const keys, each = 100, 15 * time.Millisecond
		server := redistest.Start(t, "--key-load-delay", fmt.Sprint(each.Microseconds()), "--loading-process-events-interval-bytes", "1024")
		outside := server.Client(t)
		for n := range keys {
			if err := outside.Set(t.Context(), fmt.Sprint("filler", n), make([]byte, 2000), 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		set(t, outside, "rdbcompression", "no")
		server.Save()
		server.RestartWithData(t) // with nobody else there, to count who looks whether it is ready
		alone := info(t, outside, "stats", "total_connections_received")
		s := newStorm(t, name, server)
		server.Save()
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			for ctx.Err() == nil {
				if lease, err := s.waiter.(strategies.Trier).TryAcquire(ctx, "another"); err == nil {
					_ = lease.Release(t.Context())
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
		server.RestartWithData(t) // returns when the data is loaded
		cancel()
		asking.Wait()
		s.few(info(t, outside, "stats", "total_connections_received") - alone)
		if !strings.Contains(outside.Info(t.Context(), "errorstats").Val(), "LOADING") {
			t.Error("nobody asked while Redis loaded its data")
		}
		s.over()
	})
}

// storm is a process that waits for a lock that another one holds.
type storm struct {
	t      *testing.T
	lease  strategies.Lease
	waiter strategies.Locker
	*waiters
}

func newStorm(t *testing.T, name string, server *redistest.Server) *storm {
	t.Helper()
	holder, waiter := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
	s := &storm{t: t, lease: acquire(t, holder), waiter: waiter}
	b := &book{t: t, pause: 250 * time.Millisecond}
	b.enter("the holder", s.lease)
	s.waiters = b.wait(0, waiter)
	return s
}

func (s *storm) few(connections int64) {
	s.t.Helper()
	if connections > fewConnections {
		s.t.Errorf("two processes, of which one waits, made %d connections", connections)
	}
}

// over has the lock go on.
func (s *storm) over() {
	s.t.Helper()
	s.leave(s.lease)
	if err := release(s.t, s.lease); err != nil {
		s.t.Errorf("the release returned %v", err)
	}
	s.all.Wait()
}
