package store

import "context"

// Sweeper is a Store that removes what dead runs have left on a user's server, as a run does
// before it starts, but for as long as it takes.
type Sweeper interface {
	// Sweep leaves alone what belongs to a run that lives, or that cannot be told. The error
	// is as that of Open.
	Sweep(ctx context.Context, runID string, o Options) (Swept, error)
}

// Swept is what a sweep of a server removed.
type Swept struct {
	Kind    string // of what was removed: keys, schemas
	Removed int
	Runs    []string // ids of the dead runs that it was of
	Skipped []string // what was not looked at, and why
}
