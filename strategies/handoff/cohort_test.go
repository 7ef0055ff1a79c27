package handoff_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// handoff and cohort use the same protocol. A process of handoff and a process of cohort therefore exclude each other
// and pass the lock to each other.
func TestExcludesHandoff(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p, other := trial.Start(t, server, "cohort", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	lease := other.Acquire(t, "key")
	if _, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try-lock returned %v, want ErrHeld", err)
	}
	next := make(chan strategies.Lease)
	go func() {
		lease, err := p.Locker.Acquire(context.Background(), "key")
		if err != nil {
			t.Error(err)
		}
		next <- lease
	}()
	outside := lookAt(t, server)
	poll.Until(t, "it is queued", func() bool { return outside.LLen(t.Context(), "trial:key:handoff").Val() == 1 })
	trial.Release(t, lease)
	got := <-next
	if token, last := token(got), token(lease); token <= last {
		t.Errorf("token %d came after %d", token, last)
	}
	trial.Release(t, got)
}

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

// A batch must be between 1 and 1024. OpenCohort reports an invalid batch and an invalid configuration in one error.
func TestCohortOptions(t *testing.T) {
	for batch, ok := range map[int]bool{-1: false, 0: false, 1: true, 1024: true, 1025: false} {
		if err := (handoff.CohortOptions{Batch: batch}).Validate(); (err == nil) != ok {
			t.Errorf("batch=%d: %v", batch, err)
		}
	}
	for list, want := range map[string]string{
		"cohort:batch=0":    "option batch must be between 1 and 1024, not 0",
		"cohort:batch=1025": "option batch must be between 1 and 1024, not 1025",
		"cohort:size=5":     `no option "size" (there are: batch)`,
	} {
		if _, err := strategies.ParseVariants(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want: %s", list, err, want)
		}
	}
	if _, err := handoff.OpenCohort(goredis.Config{}, handoff.CohortOptions{}); err == nil ||
		!strings.Contains(err.Error(), "the number of nodes must be at least 1, not 0") ||
		!strings.Contains(err.Error(), "option batch must be between 1 and 1024, not 0") {
		t.Errorf("Open said: %v", err)
	}
}
