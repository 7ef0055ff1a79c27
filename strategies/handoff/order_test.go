package handoff_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Where nothing lingers, whoever is queued first is served first, in a rush too; and that
// alone is claimed.
func TestFirstComeFirstServed(t *testing.T) {
	if trial.Variant(t, "handoff").Info().Claims.FIFO || !trial.Variant(t, "handoff:linger=0s").Info().Claims.FIFO {
		t.Error("FIFO is claimed where requests linger, or not where they do not")
	}
	const wave = 24
	server := redistest.Start(t)
	var processes []trial.Process
	for range 3 {
		processes = append(processes, trial.Start(t, server, "handoff:linger=0s", time.Hour))
	}
	q := newQueue(t, server)
	lease := processes[0].Acquire(t, "key")
	for n := range wave {
		q.join(n, processes[n%3])
	}
	for n := range 4 * wave { // as one is served, another comes
		q.join(wave+n, processes[n*n%3])
		trial.Release(t, lease)
		lease = q.next(n)
	}
	for n := range wave {
		trial.Release(t, lease)
		lease = q.next(4*wave + n)
	}
	trial.Release(t, lease)
}
