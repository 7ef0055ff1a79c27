package bounded_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

func TestCallEndsWithContext(t *testing.T) {
	var calls bounded.Calls
	reason := &net.OpError{Op: "dial", Err: errors.New("the caller's own")}
	ctx, end := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	began := make(chan struct{})
	go func() {
		<-began
		end(reason)
	}()
	err := calls.Do(ctx, func() error {
		close(began)
		<-release
		return nil
	})
	if !errors.Is(err, reason) {
		t.Errorf("the error is %v, not the cause of the context", err)
	}
	if found, is := errors.AsType[*net.OpError](err); is {
		t.Errorf("the error shows %v, as if nothing had been sent", found)
	}
	closed := make(chan struct{})
	go func() {
		calls.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("Close has not waited for the call")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	<-closed
}

func TestCallReturnsCommandError(t *testing.T) {
	var calls bounded.Calls
	for range 2 {
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			if err := calls.Do(ctx, func() error { return redis.Nil }); err != redis.Nil {
				t.Errorf("the error is %v", err)
			}
		}
		calls.Close() // later calls still work
	}
}

func TestCloseWithHangingCall(t *testing.T) {
	var calls bounded.Calls
	ctx, end := context.WithCancel(t.Context())
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	go end()
	_ = calls.Do(ctx, func() error { <-hang; return nil })
	over := make(chan struct{})
	go func() {
		calls.Close()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("Close hangs")
	}
}

// Do must not call send if the context is already done. MayHaveRun must be false for the error.
func TestNothingIsSentAfterContextEnd(t *testing.T) {
	var calls bounded.Calls
	ctx, end := context.WithCancel(t.Context())
	end()
	err := calls.Do(ctx, func() error { t.Error("it was sent"); return nil })
	if !errors.Is(err, context.Canceled) || indeterminate.MayHaveRun(err) {
		t.Errorf("the error is %v", err)
	}
}

// The context ends before the reply, with the cause ErrHeld, as when the time of lock.Wait has passed. The error must
// not be ErrHeld, because it is unknown whether the lock is held.
func TestUnansweredCallIsNotErrHeld(t *testing.T) {
	var calls bounded.Calls
	defer calls.Close()
	ctx, end := context.WithTimeoutCause(t.Context(), time.Millisecond, strategies.ErrHeld)
	defer end()
	hang := make(chan struct{})
	defer close(hang)
	err := calls.Do(ctx, func() error { <-hang; return nil })
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, strategies.ErrHeld) {
		t.Errorf("the error is %v", err)
	}
}

// Get must return a reply that arrives 1 ms after the end of the context, because its command then need not be undone.
// A reply that arrives 1 s after the end must be dropped.
func TestAnswerJustAfterContextEndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls bounded.Calls
		defer calls.Close()
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		for late, want := range map[time.Duration]bool{time.Millisecond: true, time.Second: false} {
			ctx, end := context.WithTimeout(ctx, time.Millisecond)
			got, err := bounded.Get(ctx, &calls, func() (bool, error) {
				<-ctx.Done()
				time.Sleep(late)
				return true, nil
			})
			end()
			if got != want || (err == nil) != want || (bounded.Over(err) != nil) == want {
				t.Errorf("%v after the end: %v, %v", late, got, err)
			}
		}
	})
}
