package store

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Faults injects faults into the servers, and into the network between the clients and them.
type Faults interface {
	// Detour returns how the application instance with this number dials the store; nil means directly.
	Detour(instance int) Through
	// Prepare checks that a fault is possible and prepares it, so that Action.Hit can inject it at once.
	Prepare(ctx context.Context, fault workloads.Fault, where RunMarks) (Action, error)
}

// ErrNoTarget is returned by Faults.Prepare if the strategy has nothing that the fault could
// hit, such as subscribers.
var ErrNoTarget = errors.New("the fault has no target")

// RunMarks identifies the keys, channels and connections that belong to a run.
type RunMarks struct {
	Mark string                // a part of the name of every key and channel
	Ours func(key string) bool // reports whether a key belongs to the run
	Name string                // the name of the run's connections
	TTL  time.Duration
}

// Action is a fault that is ready to be injected. Its functions also work with a context that has ended, because a run
// that is cancelled must still undo its faults.
type Action struct {
	Hit    func(ctx context.Context) error
	End    func(ctx context.Context) error // undoes the fault; nil if there is nothing to undo
	Outage Outage
	// Loses is true if a server loses confirmed writes in this fault, including those of counters.
	Loses bool
}

// Outage is the part of a fault during which no client can get a lock and the servers may not answer.
type Outage int

// The outages.
const (
	NoOutage   Outage = iota
	Briefly           // until Hit has returned
	Throughout        // until End has returned
)
