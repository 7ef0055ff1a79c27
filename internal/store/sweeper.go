package store

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Sweeper is a Store that can remove what dead runs left on a user's server. A run does that too
// before it starts, but with a time limit.
type Sweeper interface {
	// Sweep does not touch what belongs to a live run, or to a run whose state is unknown. Its
	// errors are those of Open.
	Sweep(ctx context.Context, runID string, o Options) (Swept, error)
}

// Swept is what a sweep of a server removed.
type Swept struct {
	Kind    string // of what was removed: keys or schemas
	Removed int
	Runs    []string // IDs of the dead runs
	Skipped []string // what was not examined, and why
}

// SweepBudget limits the search for old keys on a user's server before a run. For millions of keys use
// lockbench clean.
const SweepBudget = time.Second

// runKey finds the run ID in a key. Strategies may add a prefix and a suffix.
var runKey = regexp.MustCompile(`lockbench:\{([^:{}]+):`)

// Keys are the keys of lockbench on a server.
type Keys struct {
	Scan      func(ctx context.Context, visit func(key string)) error
	Connected func(ctx context.Context) ([]string, error) // names of connections, lockbench:ID:
	Remove    func(ctx context.Context, keys []string) error
}

// Sweep removes the keys of dead runs, those without any connection, and adds them to swept. budget
// limits the search, and twice the budget the whole; 0 means no limit.
func (k Keys) Sweep(ctx context.Context, budget time.Duration, swept *Swept) error {
	look := ctx
	if budget > 0 {
		var cancel, done context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*budget)
		defer cancel()
		look, done = context.WithTimeout(ctx, budget)
		defer done()
	}
	byRun := map[string][]string{}
	err := k.Scan(look, func(key string) {
		if match := runKey.FindStringSubmatch(key); match != nil {
			byRun[match[1]] = append(byRun[match[1]], key)
		}
	})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if len(byRun) == 0 {
		return nil
	}
	// This must follow the scan: a run that begins in between has no keys in the result.
	names, err := k.Connected(ctx)
	if err != nil {
		return fmt.Errorf("find out which runs live: %w", err)
	}
	for _, name := range names {
		if rest, ours := strings.CutPrefix(name, "lockbench:"); ours {
			run, _, _ := strings.Cut(rest, ":")
			delete(byRun, run)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		if err := k.Remove(ctx, byRun[run]); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
		swept.Removed += len(byRun[run])
		if !slices.Contains(swept.Runs, run) { // a run may have left keys on several nodes
			swept.Runs = append(swept.Runs, run)
		}
	}
	return nil
}
