package store

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Faults injects faults outside of the clients: on the servers, and on the network to them.
type Faults interface {
	// Detour returns how an application instance, by its number, dials the store; nil means
	// directly.
	Detour(instance int) Through
	// Prepare makes the preparations for a fault and checks that the fault is possible.
	Prepare(ctx context.Context, fault workloads.Fault, where RunMarks) (Action, error)
}

// ErrNoTarget is returned by Faults.Prepare if the strategy has nothing that the fault could
// hit, such as subscribers.
var ErrNoTarget = errors.New("the fault has no target")

// RunMarks identifies what belongs to a run on the servers.
type RunMarks struct {
	Mark string                // in every key and channel
	Ours func(key string) bool // reports whether a key is the run's
	Name string                // of its connections
	TTL  time.Duration
}

// Action is a fault that is ready to be injected. Its functions also work with a context that
// has ended, because a fault must be undone.
type Action struct {
	Hit    func(ctx context.Context) error
	End    func(ctx context.Context) error // undoes the fault; nil if there is nothing to undo
	Outage Outage
	// Loses reports that a server loses confirmed writes, including counters.
	Loses bool
}

// Outage is how long no client can get a lock; during this time the servers may not answer.
type Outage int

// The outages.
const (
	NoOutage   Outage = iota
	Briefly           // until Hit has returned
	Throughout        // until End has returned
)
