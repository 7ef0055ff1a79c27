package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/strategies"
)

// Sweeper is a Server on which killed runs leave keys, and which can remove these keys. Redis implements Sweeper.
// PostgreSQL implements it too, because of the tables of --work transaction. In the other stores the locks end with
// their sessions or connections, so nothing remains. A run only warns that such keys exist. The command lockbench clean
// removes them.
type Sweeper interface {
	// Sweep removes the keys of dead runs. It does not touch the keys of a live run, or of a run whose state is unknown.
	Sweep(ctx context.Context, swept *Swept)
}

// SweepAt opens a user's server, removes the keys that dead runs left there, and closes the server. unlisted contains
// strategies that are not registered. SweepAt also removes the keys of these strategies.
func SweepAt(ctx context.Context, kind Store, o Options, unlisted []strategies.Info) (swept Swept, err error) {
	swept.unlisted = unlisted
	o.Warn, o.Logf = nil, nil // it removes all leftovers now, so Open need not report them
	opened, err := kind.Open(ctx, NewRunID(), o)
	if err != nil {
		return swept, err
	}
	if sweeper, ok := opened.(Sweeper); ok {
		sweeper.Sweep(ctx, &swept)
	}
	return swept, errors.Join(ctx.Err(), opened.Close(ctx))
}

// Swept lists what dead runs left on a server.
type Swept struct {
	Found   int
	Runs    []string // IDs of the dead runs
	Skipped []string // what was not examined or not removed, with the reason
	Noun    string   // the noun for what was found; "" means key

	unlisted []strategies.Info
}

// Add adds found, a number of keys of a dead run, to the total. Several calls can concern one run, because it may have
// left keys on several nodes.
func (s *Swept) Add(found int, run string) {
	s.Found += found
	if !slices.Contains(s.Runs, run) {
		s.Runs = append(s.Runs, run)
	}
}

// Count returns the number of leftovers with its noun, such as "12 keys".
func (s Swept) Count() string { return words.Count(s.Found, cmp.Or(s.Noun, "key")) }

// Tell calls warn if dead runs left keys on the user's server at addr, and logf for each search that failed. Both
// functions may be nil.
func (s Swept) Tell(addr string, warn func(string), logf func(format string, args ...any)) {
	if s.Found > 0 && warn != nil {
		warn(fmt.Sprintf("killed runs (%s) left %s on %s: remove them with lockbench clean --redis URL",
			strings.Join(s.Runs, ", "), s.Count(), addr))
	}
	for _, skipped := range s.Skipped {
		if logf != nil {
			logf("could not search for leftovers of killed runs: %s", skipped)
		}
	}
}

// LookBudget limits the time that a run spends before its start to search a user's server for leftovers of dead runs.
const LookBudget = time.Second

// Keys gives access to the keys on a server, for a search for leftovers.
type Keys struct {
	Addr      string
	Scan      func(ctx context.Context, visit func(key string)) error
	Connected func(ctx context.Context) ([]string, error) // names of connections; a run's begin with lockbench:ID:
	Remove    func(ctx context.Context, keys []string) error
}

// Look adds the keys of dead runs to left. A run is dead if no connection carries its name. Look takes at most twice
// LookBudget.
func (k Keys) Look(ctx context.Context, left *Swept) {
	ctx, cancel := context.WithTimeout(ctx, 2*LookBudget)
	defer cancel()
	scanning, done := context.WithTimeout(ctx, LookBudget)
	defer done()
	k.each(ctx, scanning, left, func([]string) error { return nil })
}

// Sweep removes the keys of dead runs, and adds them to swept.
func (k Keys) Sweep(ctx context.Context, swept *Swept) {
	k.each(ctx, ctx, swept, func(keys []string) error { return k.Remove(ctx, keys) })
}

// each calls do with the keys of each dead run, and adds them to swept.
func (k Keys) each(ctx, scanning context.Context, swept *Swept, do func(keys []string) error) {
	dead, err := k.ofDead(ctx, scanning, namesOnRedis(swept.unlisted))
	for _, run := range slices.Sorted(maps.Keys(dead)) {
		if err = do(dead[run]); err != nil {
			err = fmt.Errorf("remove: %w", err)
			break
		}
		swept.Add(len(dead[run]), run)
	}
	if err != nil {
		swept.Skipped = append(swept.Skipped, fmt.Sprintf("keys on %s: %v", k.Addr, err))
	}
}

// ofDead returns the keys of dead runs, grouped by run ID.
func (k Keys) ofDead(ctx, scanning context.Context, names KeyNames) (map[string][]string, error) {
	byRun := map[string][]string{}
	err := k.Scan(scanning, func(key string) {
		if run, _, ours := names.Run(key); ours {
			byRun[run] = append(byRun[run], key)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	if len(byRun) == 0 {
		return nil, nil
	}
	// The connections are listed after the scan, so that a run that begins between the two has no keys in byRun.
	connected, err := k.Connected(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out which runs are alive: %w", err)
	}
	for _, name := range connected {
		if rest, ours := strings.CutPrefix(name, "lockbench:"); ours {
			run, _, _ := strings.Cut(rest, ":")
			delete(byRun, run)
		}
	}
	return byRun, nil
}
