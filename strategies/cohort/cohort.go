// Package cohort is lock cohorting (Dice, Marathe and Shavit, PPoPP 2012) on Redis: a
// process that has the lock passes it on among its own waiters before it gives it up to
// other processes, in the order in which they came.
//
// It is package handoff's lock, with whose Lockers of the same Prefix it shares it, and all
// that is said there holds here. But there is no bound in time on how long the lock may
// stay in a process: to those who waited there when it came, as many as the option batch
// says, and while half the TTL is left. Who waits is overtaken once at most by each client of
// the other processes, unless one of those bounds is met first.
package cohort

import (
	_ "embed" // the package comment
	"fmt"
	"math"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
)

//go:embed cohort.go
var source string

func init() {
	strategies.Register(strategies.Info{
		Name:        "cohort",
		Summary:     "handoff with no bound in time: a process passes the lock to all who waited in it",
		Doc:         strategies.PackageComment(source),
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Bounded: true, Fencing: true},
		Capacity:    1,
		Nodes:       1,
		Connections: strategies.Connections{PerInstance: 2},
		Rights:      handoff.Rights(),
	}, Defaults(), New)
}

// Options of the lock.
type Options struct {
	Batch int `opt:"batch" help:"most acquisitions that a process makes of one lease from Redis"`
}

// Defaults are batches as large as a lease has tokens for.
func Defaults() Options { return Options{Batch: handoff.MostTurns} }

// Validate refuses what cannot be a batch.
func (o Options) Validate() error {
	if o.Batch < 1 || o.Batch > handoff.MostTurns {
		return fmt.Errorf("option batch: it must be between 1 and %d, not %d", handoff.MostTurns, o.Batch)
	}
	return nil
}

// New returns a Locker on the first node. It does not talk to Redis yet.
func New(config strategies.Config, options Options) (*handoff.Locker, error) {
	return handoff.Open(config, math.MaxInt64, options.Batch)
}
