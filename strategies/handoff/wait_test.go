package handoff_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// A wait that ends in the queue says so by its context's cause, which package lock sets for Wait. One
// that ends while Redis is away says what became of the connection.
func TestWaitSaysWhy(t *testing.T) {
	errOver := errors.New("the wait is over")
	each(t, every, func(t *testing.T, variant string) {
		server := redistest.Start(t)
		h, p := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		acquire(t, h)
		wait := func(before func()) error {
			ctx, end := context.WithCancelCause(context.Background())
			ended := make(chan error)
			go func() {
				_, err := locker(p).AcquireFor(ctx, "key", time.Hour)
				ended <- err
			}()
			newQueue(t, server).waiting(p, 1)
			before()
			end(errOver)
			err := <-ended
			if !errors.Is(err, context.Canceled) {
				t.Errorf("its context ended, and it returned %v", err)
			}
			return err
		}
		if err := wait(func() {}); !errors.Is(err, errOver) {
			t.Errorf("a wait that ended in the queue returned %v", err)
		}
		err := wait(func() {
			server.Kill()
			poll.Until(t, "it hears nothing", func() bool { return handoff.Listener(locker(p)) == nil })
		})
		broken := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
		if errors.Is(err, errOver) || !broken {
			t.Errorf("a wait that ended without Redis returned %v, want how the connection ended", err)
		}
	})
}
