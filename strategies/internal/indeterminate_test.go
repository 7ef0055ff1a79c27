package internal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
			test.want == nil && got != test.err {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// lateTimer is a context whose deadline has passed but whose Err is still nil, because its timer has not fired yet.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestSettleOutlivesContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	settle, done := indeterminate.Settle(ended)
	if settle.Err() != nil {
		t.Errorf("it has ended too: %v", settle.Err())
	}
	if _, bounded := settle.Deadline(); !bounded {
		t.Error("it has no bound")
	}
	done()
}
