package cohort_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Processes may have either lock of ours: it is one.
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
	poll.Until(t, "it is queued", func() bool { return server.Client(t).LLen(t.Context(), "trial:key:handoff").Val() == 1 })
	trial.Release(t, lease)
	got := <-next
	if token, last := token(got), token(lease); token <= last {
		t.Errorf("token %d came after %d", token, last)
	}
	trial.Release(t, got)
}

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

// Whatever the rush, a process has no more turns of one lease than batch says, and with
// the default it has many.
func TestTurnsOfALease(t *testing.T) {
	t.Parallel()
	for batch, least := range map[int]int64{1: 1, 3: 2, 1024: 2} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			variant := fmt.Sprint("cohort:batch=", batch)
			processes := []trial.Process{trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)}
			var all sync.WaitGroup
			var mu sync.Mutex // whoever has the lock has it, but the race detector cannot know
			var last, most, turns int64
			const clients, each = 20, 20
			for n := range clients {
				all.Go(func() {
					for range each {
						lease, err := processes[n%2].Locker.Acquire(t.Context(), "key")
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if token(lease) <= last {
							t.Errorf("token %d came after %d", token(lease), last)
						}
						last = token(lease)
						turn := last%handoff.MostTurns + 1 // of its lease
						most = max(most, turn)
						turns++
						mu.Unlock()
						if err := lease.Release(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if most > int64(batch) || most < least {
				t.Errorf("a lease had %d turns, want %d at least and %d at most", most, least, batch)
			}
			if turns != clients*each {
				t.Errorf("%d turns, want %d", turns, clients*each)
			}
		})
	}
}

// What cannot be is refused, all at once.
func TestOptions(t *testing.T) {
	for batch, ok := range map[int]bool{-1: false, 0: false, 1: true, 1024: true, 1025: false} {
		if err := (cohort.Options{Batch: batch}).Validate(); (err == nil) != ok {
			t.Errorf("batch=%d: %v", batch, err)
		}
	}
	for list, want := range map[string]string{
		"cohort:batch=0":    "option batch: it must be between 1 and 1024, not 0",
		"cohort:batch=1025": "option batch: it must be between 1 and 1024, not 1025",
		"cohort:size=5":     `no option "size" (there are: batch)`,
	} {
		if _, err := strategies.ParseVariants(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want: %s", list, err, want)
		}
	}
	if _, err := cohort.Open(goredis.Config{}, cohort.Options{}); err == nil ||
		!strings.Contains(err.Error(), "it needs 1 nodes") || !strings.Contains(err.Error(), "it must be between 1 and 1024, not 0") {
		t.Errorf("Open said: %v", err)
	}
}
