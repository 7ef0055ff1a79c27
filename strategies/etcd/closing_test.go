package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/strategies"
)

// Whoever waits for a session that comes only after Close hears of that.
func TestCloseWhileASessionIsBeingMade(t *testing.T) {
	server := etcdtest.Start(t, 1)
	p := newSessions(server.Client(t), 10, true)
	server.Pause(0)
	ended := make(chan error, 1)
	go func() {
		_, err := p.take(t.Context())
		ended <- err
	}()
	state := func(is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			p.mu.Lock()
			done := is()
			p.mu.Unlock()
			if done {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("it never comes so far")
			}
		}
	}
	state(func() bool { return p.opening == 1 })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.close()
	}()
	state(func() bool { return p.closed })
	server.Resume(0)
	select {
	case err := <-ended:
		if !errors.Is(err, strategies.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for ever")
	}
	<-closed
	if _, err := p.take(t.Context()); !errors.Is(err, strategies.ErrClosed) {
		t.Errorf("afterwards: %v", err)
	}
}
