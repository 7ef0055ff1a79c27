package store

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Faults bring about what goes wrong outside of the clients: on the servers, and
// on the way to them.
type Faults interface {
	// Detour is the way of an application instance to the store, by its number; nil is the
	// straight one.
	Detour(instance int) Through
	// Prepare does what precedes a fault, and looks whether it can come about.
	Prepare(ctx context.Context, fault workloads.Fault, where RunMarks) (Action, error)
}

// ErrNoTarget is returned by Faults.Prepare when there is nothing of the strategy's that
// the fault could hit, such as subscribers.
var ErrNoTarget = errors.New("there is nothing that it could hit")

// RunMarks is what of a run there is to find on the servers.
type RunMarks struct {
	Mark string // in every key and channel
	Name string // of its connections
	TTL  time.Duration
}

// Action is a fault that is about to come about. Its functions work with a context that
// has ended: what has begun must be undone.
type Action struct {
	Hit    func(ctx context.Context) error
	End    func(ctx context.Context) error // undoes it; nil where there is nothing to undo
	Outage Outage
	// Loses says that a server forgets some of what it had confirmed, counters too.
	Loses bool
}

// Outage is how long nobody can get any lock, and the servers may not answer.
type Outage int

// The outages.
const (
	NoOutage   Outage = iota
	Briefly           // until Hit has returned
	Throughout        // until End has returned
)
