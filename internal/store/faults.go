package store

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Faults injects faults into the servers, and into the network between the clients and them.
type Faults interface {
	// Detour returns the wrapper for the dialer of the application instance with the given number. It returns nil if the
	// instance connects directly.
	Detour(instance int) Through
	// Prepare checks that a fault is possible and prepares it, so that Action.Hit can inject it without delay.
	Prepare(ctx context.Context, fault workloads.Fault, where RunMarks) (Action, error)
}

// ErrNoTarget reports that a fault would hit nothing, for example because it closes the connections of subscribers and
// the strategy has none. Faults.Prepare returns it.
var ErrNoTarget = errors.New("the fault has no target")

// RunMarks identifies the keys, channels and connections that belong to a run.
type RunMarks struct {
	Mark string                // a part of the name of every key and channel
	Ours func(key string) bool // reports whether a key belongs to the run
	Name string                // the name of the run's connections
	TTL  time.Duration
}

// Action is a fault that is ready to be injected. Hit and End work even if ctx is already done, because a cancelled run
// must still undo its faults.
type Action struct {
	Hit    func(ctx context.Context) error
	End    func(ctx context.Context) error // undoes the fault; nil if there is nothing to undo
	Outage Outage
	// Loses is true if the fault makes a server lose confirmed writes, including writes to counters.
	Loses bool
}

// Outage is the part of a fault in which no client can get a lock. During an outage the servers may not reply.
type Outage int

// These are the possible outages.
const (
	NoOutage   Outage = iota
	Briefly           // until Hit has returned
	Throughout        // until End has returned
)
