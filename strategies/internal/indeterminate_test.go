package internal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

func TestMayHaveRun(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{redis.Nil, false},
		{redis.ErrNoScript, false},
		{fmt.Errorf("wrapped: %w", redis.ErrPoolTimeout), false},
		{redis.ErrClosed, false},
		{context.Canceled, false}, // from waiting for a connection
		{context.DeadlineExceeded, false},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, false},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, true},
		{io.EOF, true},
	} {
		if got := indeterminate.MayHaveRun(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}

func TestBecause(t *testing.T) {
	late := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	live := t.Context()
	ended, cancel := context.WithCancel(live)
	cancel()
	past, cancel := context.WithDeadline(live, time.Now().Add(-time.Second))
	defer cancel()
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		want error // that it must be, beside err itself; nil is err alone
	}{
		{"a live context", live, late, nil},
		{"a cancelled one", ended, io.EOF, context.Canceled},
		{"a cancelled one that says so", ended, context.Canceled, nil},
		{"a deadline met by the socket", past, late, context.DeadlineExceeded},
		{"a deadline whose timer has not fired", lateTimer{live}, late, context.DeadlineExceeded},
		{"another fault past such a deadline", lateTimer{live}, io.EOF, nil},
	} {
		got := indeterminate.Because(test.ctx, test.err)
		if !errors.Is(got, test.err) || test.want != nil && !errors.Is(got, test.want) ||
			test.want == nil && got != test.err { //nolint:errorlint // the very same
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// lateTimer is past its deadline without having ended yet.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestSettle(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lost := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, test := range []struct {
		name    string
		answers []error // of the tries; the last counts for all others
		tries   int
	}{
		{"an answer", []error{nil}, 1},
		{"two lost answers", []error{lost, io.EOF, nil}, 3},
		{"an error of Redis", []error{lost, fmt.Errorf("wrapped: %w", redis.ErrNoScript)}, 2},
		{"nothing to take back", []error{lost, strategies.ErrNotHeld}, 2},
		{"a closed client", []error{redis.ErrClosed}, 1},
		{"a server that is gone", []error{io.EOF, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, 2},
	} {
		tries := 0
		indeterminate.Settle(ended, func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
				t.Errorf("%s: its context has no bound, or has ended: %v", test.name, ctx.Err())
			}
			tries++
			return test.answers[min(tries, len(test.answers))-1]
		})
		if tries != test.tries {
			t.Errorf("%s: %d tries, want %d", test.name, tries, test.tries)
		}
	}
}

func TestSettleEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		indeterminate.Settle(t.Context(), func(context.Context) error { return io.EOF })
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("a server that never answers keeps its caller for %v", took)
		}
	})
}
