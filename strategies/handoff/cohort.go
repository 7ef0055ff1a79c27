package handoff

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed cohort.md
var cohortDoc string

// Cohort returns the Info, the options and the constructor of lock cohorting (Dice, Marathe and Shavit, PPoPP 2012),
// for registration as cohort. Cohort uses the same protocol as handoff, but a process passes the lock on to all its
// waiters without a time limit. cohort.md describes the resulting bound on overtaking.
func Cohort() strategies.Strategy {
	return strategies.Define(info("cohort", cohortDoc,
		"handoff with no bound in time: a process passes the lock to all its waiters"), CohortDefaults(), OpenCohort)
}

// CohortOptions are the options of cohort for one process; other processes may have different ones.
type CohortOptions struct {
	Batch int `opt:"batch" help:"largest number of acquisitions that a process makes with one lease from Redis"`
}

// CohortDefaults returns the options with the largest batch: MostTurns turns on each lease.
func CohortDefaults() CohortOptions { return CohortOptions{Batch: MostTurns} }

// Validate rejects a batch that is not between 1 and MostTurns.
func (o CohortOptions) Validate() error {
	if o.Batch < 1 || o.Batch > MostTurns {
		return fmt.Errorf("option batch must be between 1 and %d, not %d", MostTurns, o.Batch)
	}
	return nil
}

// NewCohort returns a Locker of cohort for a service, with CohortDefaults. New describes the requirements for the
// client.
func NewCohort(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return NewCohortWith(client, CohortDefaults(), options...)
}

// NewCohortWith returns a Locker of cohort for a service, with the given options of cohort. It returns an error if they
// are invalid.
func NewCohortWith(
	client redis.UniversalClient, own CohortOptions, options ...lock.Option,
) (*lock.FencedLocker, error) {
	return lock.OpenFenced([]redis.UniversalClient{client}, OpenCohort, own, options)
}

// OpenCohort returns a Locker of cohort on the only node of config, for use by lockbench. It sends no command to Redis.
func OpenCohort(config goredis.Config, options CohortOptions) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("cohort: %w", err)
	}
	return Open(config, Options{Linger: math.MaxInt64, Tokens: true, Turns: options.Batch})
}
