package handoff_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// In a rush a request goes with the release before it: Redis reads half as often.
func TestLingerSavesReads(t *testing.T) {
	const clients, turns = 20, 50
	server := redistest.Start(t)
	var processes []trial.Process
	for range 2 {
		processes = append(processes, trial.Start(t, server, "handoff:linger=1m", time.Hour))
	}
	before := processed(t, server)
	var all sync.WaitGroup
	for n := range clients {
		p := processes[n%len(processes)]
		all.Go(func() {
			for range turns {
				// With a block each has a place of its own.
				lease, err := p.Locker.(*handoff.Locker).AcquireBlock(t.Context(), "key", 2)
				if err == nil {
					err = lease.Release(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	// Without it would be two. A little is more than one: the first turns, heartbeats.
	if reads := float64(processed(t, server)-before) / (clients * turns); reads > 1.3 {
		t.Errorf("Redis read %.2f times for each acquisition", reads)
	}
}

// processed is how often Redis has read from a connection.
func processed(t *testing.T, server *redistest.Server) int {
	t.Helper()
	stats := server.Client(t).Info(t.Context(), "stats").Val()
	_, rest, found := strings.Cut(stats, "total_reads_processed:")
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(value)
	if !found || err != nil {
		t.Fatalf("no reads in %q", stats)
	}
	return n
}
