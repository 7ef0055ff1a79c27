// Package peers adapts the lock libraries redislock and redsync, through their public interfaces, for comparison.
// Package rueidislock is separate, because it depends on another Redis client. The lock is the string KEY with the
// owner's token.
//
//  1. Acquire runs one script with MSETNX KEY token and PEXPIRE KEY (redislock), or sends SET KEY token NX PX to each
//     node and needs a majority (redsync).
//  2. A waiter sleeps and tries again, every 100 ms (redislock) or at random after 50 to 250 ms (redsync).
//     PollOptions change the sleep.
//  3. Release runs one script, which deletes KEY if its value is the owner's token. redsync runs the script on each
//     node.
//
// A release wakes no waiter. The first client that tries after the release takes the lock.
//
// redislock.md and redsync.md describe guarantees, costs and failure modes.
package peers

import (
	"context"
	"crypto/rand"
	_ "embed" // the texts
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/polled"
)

var (
	//go:embed redislock.md
	redislockDoc string
	//go:embed redsync.md
	redsyncDoc string
)

// Strategies returns redislock and redsync, for registration under their names.
func Strategies() []strategies.Strategy {
	return []strategies.Strategy{
		strategies.Define(strategies.Info{
			Doc: redislockDoc, Name: "redislock", Capacity: 1, Nodes: 1, BlackBox: true, Format: "SET NX PX",
			Summary:   "bsm/redislock: MSETNX in a script, polled every 100 ms",
			Claims:    strategies.Claims{Exclusion: true, Recovery: true},
			Library:   "github.com/bsm/redislock",
			Libraries: library("github.com/bsm/redislock", "Client.Obtain"),
			Limits: []strategies.Limit{
				strategies.ByRedisClock(),
				{Check: "slow answer", Because: "it does not check whether the lease had expired when the reply arrived"},
			},
			Rights: strategies.Rights{
				Keys:     []string{"{key}"},
				Commands: []string{"msetnx", "mset", "mget", "getrange", "del", "pexpire", "eval", "evalsha"},
			},
		}, PollOptions{}, OpenRedislock),
		strategies.Define(strategies.Info{
			Doc: redsyncDoc, Name: "redsync", Capacity: 1, Nodes: 1, BlackBox: true, Format: "SET NX PX",
			Summary:   "go-redsync/redsync v4: SET NX PX, polled every 50 to 250 ms",
			Claims:    strategies.Claims{Exclusion: true, Recovery: true},
			Library:   "github.com/go-redsync/redsync/v4",
			Libraries: library("github.com/go-redsync/redsync/v4", "Redsync.NewMutex"),
			Limits:    []strategies.Limit{strategies.ByRedisClock()},
			Rights: strategies.Rights{
				Keys:     []string{"{key}"},
				Commands: []string{"set", "get", "del", "pexpire", "eval", "evalsha"},
			},
		}, PollOptions{}, OpenRedsync),
	}
}

func library(name, call string) []strategies.Library {
	return []strategies.Library{{Language: "Go", Package: name, Call: call}}
}

// PollOptions determine how long a waiter of redislock or redsync sleeps between two tries.
type PollOptions struct {
	Tuned bool          `opt:"tuned" help:"sleep with full jitter, up to a ceiling that doubles from 4 ms to 1 s"`
	Delay time.Duration `opt:"delay" help:"sleep between two tries; 0s: the sleep in the library's documentation, or that of tuned"`
}

// tuned contains the backoff settings that determine a waiter's sleeps if the option tuned is set.
var tuned = polled.SpinOptions{Backoff: polled.FullJitter, Base: 4 * time.Millisecond, Cap: time.Second}

// Refine adds the waiter's sleep to the summary. For a tuned lock, it also adds the sleep to the library's call.
func (o PollOptions) Refine(info strategies.Info) strategies.Info {
	what, _, _ := strings.Cut(info.Summary, ", polled ")
	switch {
	case o.Delay > 0:
		info.Summary = fmt.Sprintf("%s, polled every %v", what, o.Delay)
	case o.Tuned:
		info.Summary = what + ", polled at random, up to 4 ms at first and 1 s at last"
	}
	if o.Tuned && o.Delay == 0 {
		info.Libraries = slices.Clone(info.Libraries)
		way := map[string]string{"redislock": "with a RetryStrategy", "redsync": "WithRetryDelayFunc"}[info.Name]
		info.Libraries[0].Call += " " + way + " (random, up to 4 ms at first and 1 s at last)"
	}
	return info
}

// Validate returns an error for a negative delay.
func (o PollOptions) Validate() error {
	if o.Delay < 0 {
		return fmt.Errorf("delay must be at least 0, not %v", o.Delay)
	}
	return nil
}

// poller contains what the Lockers of redislock and redsync share.
type poller struct {
	config  goredis.Config
	options PollOptions
	closed  atomic.Bool
}

func openPoller(name string, config goredis.Config, options PollOptions) (*poller, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &poller{config: config, options: options}, nil
}

// Close makes further acquires fail with ErrClosed; leases can still be released.
func (p *poller) Close() error {
	p.closed.Store(true)
	return nil
}

// outcome returns the error of a release or an extension: ErrNotHeld if the lease was lost, nil if err is nil, and
// otherwise err, wrapped with the operation and the key.
func outcome(ctx context.Context, what, key string, lost bool, err error) error {
	switch {
	case lost:
		return strategies.ErrNotHeld
	case err == nil:
		return nil
	}
	return fmt.Errorf("%s %q: %w", what, key, indeterminate.Because(ctx, err))
}

// newToken returns a random token of the length that the libraries use.
func newToken() string { return rand.Text()[:22] }
