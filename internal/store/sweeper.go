package store

import "context"

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
