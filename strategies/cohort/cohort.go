// Package cohort is lock cohorting (Dice, Marathe and Shavit, PPoPP 2012) on Redis: a
// process that has the lock passes it on among its own waiters before it gives it up to
// other processes, in the order in which they came.
//
// It is package handoff's lock, with whose Lockers of the same Prefix it shares it, and all
// that is said there holds here. cohort.md says how its bound differs.
package cohort

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed cohort.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:         doc,
		Name:        "cohort",
		Summary:     "handoff with no bound in time: a process passes the lock to all who waited in it",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Bounded: true, Fencing: true},
		Capacity:    1,
		Nodes:       1,
		Keys:        []string{"{key}", "{key}:handoff"},
		Since:       handoff.Since(),
		Connections: strategies.Connections{PerInstance: 2},
		Limits:      handoff.Limits(),
		Rights:      handoff.Rights(),
	}, Defaults(), Open)
}

// Options of the lock.
type Options struct {
	Batch int `opt:"batch" help:"most acquisitions that a process makes of one lease from Redis"`
}

// Defaults returns the largest batch: as many turns as a lease has tokens for.
func Defaults() Options { return Options{Batch: handoff.MostTurns} }

// Validate rejects a batch that is not possible.
func (o Options) Validate() error {
	if o.Batch < 1 || o.Batch > handoff.MostTurns {
		return fmt.Errorf("option batch: it must be between 1 and %d, not %d", handoff.MostTurns, o.Batch)
	}
	return nil
}

// New returns a Locker for a service, with the Defaults. It does not talk to Redis yet. What handoff.New
// says of the client and of its hooks holds here.
func New(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return NewWith(client, Defaults(), options...)
}

// NewWith is New with Options of this lock.
func NewWith(client redis.UniversalClient, own Options, options ...lock.Option) (*lock.FencedLocker, error) {
	return lock.OpenFenced([]redis.UniversalClient{client}, Open, own, options)
}

// Open returns a Locker on the first node, as lockbench needs it. It does not talk to
// Redis yet.
func Open(config goredis.Config, options Options) (*handoff.Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("cohort: %w", err)
	}
	return handoff.Open(config, handoff.Options{Linger: math.MaxInt64, Turns: options.Batch})
}
