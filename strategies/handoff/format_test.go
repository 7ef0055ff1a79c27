package handoff_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// recorded starts a process that runs the scripts recorded in testdata/format1 instead of the current ones. The
// returned wire counts how often each script was replaced.
func recorded(t *testing.T, server *redistest.Server, variant string) (trial.Process, *wire) {
	t.Helper()
	w := &wire{instead: map[string]string{}, replaced: map[string]int{}}
	for name, parts := range map[string][]string{
		"queue": {"grant", "queue"}, "release": {"free", "grant", "release"}, "leave": {"grant", "leave"},
		"check": {"grant", "check"}, "extend": {"extend"},
	} {
		source := ""
		for _, part := range parts {
			text, err := os.ReadFile(filepath.Join("testdata", "format1", part+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			source += string(text)
		}
		hash, err := lookAt(t, server).ScriptLoad(t.Context(), source).Result()
		if err != nil {
			t.Fatal(err)
		}
		w.instead[handoff.Scripts[name]] = hash
	}
	return w.start(t, server, variant, time.Hour), w
}

// Processes with the scripts recorded in testdata/format1 and processes with the current scripts pass the lock to each
// other, as during the rollout of a service. If this test fails, the format needs another number and newly recorded
// scripts (DESIGN.md, "Versions").
func TestFirstVersionOfTheFormat(t *testing.T) {
	t.Parallel()
	for variant, attention := range map[string]time.Duration{
		"handoff:linger=0s": time.Hour, // a process that does not understand a message waits forever
		"cohort:batch=2":    5 * time.Millisecond,
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			old, w := recorded(t, server, variant)
			old2, w2 := recorded(t, server, variant)
			now := trial.Start(t, server, variant, time.Hour)
			processes := []trial.Process{old, now, old2, trial.Start(t, server, variant, time.Hour)}
			for _, p := range processes {
				handoff.Attend(locker(p), attention)
			}
			first := acquire(t, now)
			var all sync.WaitGroup
			defer all.Wait()
			had := make(chan bool, 1000) // for each lease, whether its process runs the recorded scripts
			for i, p := range processes {
				for range 3 {
					all.Go(func() { work(t, p, func() { had <- i%2 == 0 }) })
				}
			}
			for _, p := range processes {
				poll.Until(t, "a client waits", func() bool {
					n, _ := handoff.Waiting(locker(p), "key", time.Hour)
					return n > 0
				})
			}
			trial.Release(t, first)
			all.Wait()
			close(had)
			changes, last := 0, false
			for recorded := range had {
				if recorded != last {
					changes++
				}
				last = recorded
			}
			if changes == 0 {
				t.Error("the lock was never passed from one version to the other")
			}
			for _, w := range []*wire{w, w2} {
				w.mu.Lock()
				defer w.mu.Unlock()
				for name, hash := range handoff.Scripts {
					if w.replaced[hash] == 0 {
						t.Errorf("the recorded script %s was never run", name)
					}
				}
			}
			newQueue(t, server).nothingLeft(processes...)
		})
	}
}

// work acquires the lock 20 times and calls had for each lease. Before every fifth acquisition it also starts a wait
// that ends after 1 ms.
func work(t *testing.T, p trial.Process, had func()) {
	for turn := range 20 {
		limits := []time.Duration{patience}
		if turn%5 == 4 {
			limits = []time.Duration{time.Millisecond, patience}
		}
		for _, limit := range limits {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			got, err := locker(p).Acquire(ctx, "key")
			lease, err := enter(t, p, "a process", "key", got, err)
			cancel()
			if err == nil {
				had()
				if turn%2 == 0 {
					err = lease.Extend(context.Background(), time.Minute)
				}
				err = errors.Join(err, lease.Release(context.Background()))
			}
			if err != nil && (limit == patience || !errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("turn %d: %v", turn, err)
				return
			}
		}
	}
}
