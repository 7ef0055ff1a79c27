// Package redlock is Redlock: a client holds the lock when a majority of N independent Redis nodes grant it. It follows
// "Distributed Locks with Redis" on redis.io. The lock is the string KEY with the owner's token on each node.
//
//  1. Acquire sends SET KEY token NX PX with a new token to every node, and waits for each no longer than the node
//     timeout. The client holds the lock if N/2+1 nodes grant it and enough validity is left.
//  2. A waiter whose round failed frees the nodes by the script of step 3. It sleeps for a random time and begins
//     another round with another token.
//  3. Release runs one script on every node, which deletes KEY if GET returns the token.
//
// A release wakes no waiter.
//
// redlock.md describes guarantees, costs and failure modes.
package redlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed redlock.md
var doc string

// fewest is the smallest number of nodes of which a majority remains when one fails.
const fewest = 3

// Strategy returns the Info, the options and the constructor of the lock, for registration as redlock.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:      doc,
		Name:     "redlock",
		Summary:  "SET NX PX on a majority of independent nodes",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true},
		Capacity: 1,
		Nodes:    fewest,
		Libraries: []strategies.Library{{
			Language: "Go", Package: "github.com/go-redsync/redsync/v4",
			Call: "Redsync.NewMutex",
		}},

		NoCluster: "it needs nodes that are independent of one another",
		Limits:    []strategies.Limit{strategies.ByRedisClock()},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"set", "eval", "evalsha", "get", "del", "pexpire", "script|load"},
		},
	}, Defaults(), Open)
}

// Locker acquires locks on all nodes, for all goroutines of one process.
type Locker struct {
	config  goredis.Config
	options Options
	nodes   []*node
	turns   [][]*node // a round calls the groups in order, and the nodes of a group concurrently
	owners  *token.Names

	sleepers   pause.Sleepers
	background background.Group
	renewals   background.Group // the renewals of Options.Extend
	undoing    context.Context  // for releases on nodes whose yes arrived late
	stopUndo   context.CancelFunc
}

// New returns a Locker for a service on at least three independent Redis nodes, with Defaults. It sends no command to
// the nodes. Its error joins all errors of the options. The caller must close the clients after the Locker.
func New[C redis.UniversalClient](clients []C, options ...lock.Option) (*lock.Locker, error) {
	nodes := make([]redis.UniversalClient, len(clients))
	for i, client := range clients {
		nodes[i] = client
	}
	return lock.Open(nodes, Open, Defaults(), options)
}

// Open returns a Locker on all nodes. It sends no command to Redis.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(fewest), options.Validate()); err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	config.TTL = config.TTL.Truncate(time.Millisecond) // the resolution of TTLs in Redis
	if err := options.suits(config.TTL); err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	l := &Locker{config: config, options: options, owners: token.NewNames()}
	l.undoing, l.stopUndo = context.WithCancel(context.Background())
	for i, n := range config.Nodes {
		l.nodes = append(l.nodes, newNode(n, i))
	}
	l.turns = [][]*node{l.nodes}
	if options.Mode == Sequential {
		l.turns = slices.Collect(slices.Chunk(l.nodes, 1))
	}
	return l, nil
}

func (l *Locker) quorum() int { return len(l.nodes)/2 + 1 }

// Prepare loads the scripts on every node. An unreachable minority is not an error, because a release sends the
// script's source to a node that does not have it.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	all := func(tally, bool) bool { return false }
	p := l.ask(ctx, l.nodes, l.options.timeout(l.config.TTL), all, func(ctx context.Context, n *node) (bool, error) {
		return call(ctx, n, func() (bool, error) {
			return true, errors.Join(token.ReleaseScript.Load(ctx, n.client).Err(),
				token.ExtendScript.Load(ctx, n.client).Err())
		})
	}, nil)
	if p.tally.yes < l.quorum() {
		return fmt.Errorf("load the scripts: %w", l.noQuorum(p.tally))
	}
	return nil
}

// Acquire runs rounds, with random sleeps between them, until the caller holds the lock or ctx ends. It returns
// ErrNoQuorum after GiveUp consecutive rounds that could not reach a majority of the nodes. A node is unreachable if
// its call failed (connection refused or reset, or an error reply), or if it has replied to none of this Locker's calls
// for a second. A single late reply does not count, because this machine may have caused it. A node that refuses
// because another client holds the lock is reachable. If ctx ends during a round, Acquire still waits for the nodes
// that it has called, until the node timeout ends but for at most 0.2 s, so that it can free the nodes that grant the
// lock.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.AcquireFor(ctx, key, l.config.TTL)
}

// AcquireFor is Acquire for a lease of ttl. It returns an error if less than min-validity of ttl would remain after the
// allowance for drift. The node timeout is at most NodeShare of ttl.
func (l *Locker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	name, ttl, err := l.begin(key, ttl)
	if err != nil {
		return nil, err
	}
	var kept []*claim // failed claims that were not freed
	defer func() { l.giveAllBack(ctx, kept) }()
	var last tally // the answers of the last round; empty if ctx ended during that round
	for lonely, woken := 0, false; ; woken = true {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("acquire %q: %w", name, l.waitEnded(ctx, last))
		}
		c := l.round(ctx, name, ttl)
		if woken {
			l.config.Probe.Wake(c.won)
		}
		if c.won {
			return newLease(l, c), nil
		}
		if l.options.Release == Never {
			kept = append(l.remainingClaims(kept), c)
		} else {
			l.giveBack(ctx, c)
		}
		if !c.lonely {
			lonely = 0
		} else if lonely++; lonely >= l.options.GiveUp && ctx.Err() == nil {
			return nil, fmt.Errorf("acquire %q: gave up after %d rounds: %w", name, lonely, l.noQuorum(c.tally))
		}
		if last = (tally{}); ctx.Err() == nil {
			last = c.tally
		}
		l.sleepers.Sleep(ctx.Done(), l.delay())
	}
}

// waitEnded returns the error of an Acquire whose ctx has ended after a round. If a node reported another holder, this
// is strategies.WaitEnded. If nodes failed, it is ErrNoQuorum joined with ctx's error. Otherwise it is ctx's error.
func (l *Locker) waitEnded(ctx context.Context, last tally) error {
	switch {
	case last.no > 0:
		return strategies.WaitEnded(ctx)
	case last.failed > 0:
		return fmt.Errorf("%w: %w", ctx.Err(), l.noQuorum(last))
	}
	return ctx.Err()
}

// TryAcquire runs one round. It returns ErrHeld if another client holds the lock, and ErrNoQuorum if fewer nodes than a
// quorum replied within the node timeout.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.TryAcquireFor(ctx, key, l.config.TTL)
}

// TryAcquireFor runs one round for a lease of ttl. The limits for ttl are those of AcquireFor.
func (l *Locker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	name, ttl, err := l.begin(key, ttl)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %q: %w", name, err)
	}
	c := l.round(ctx, name, ttl)
	if c.won {
		return newLease(l, c), nil
	}
	l.giveBack(ctx, c)
	switch {
	case l.refused(c.tally):
		return nil, strategies.ErrHeld
	case ctx.Err() != nil:
		return nil, fmt.Errorf("acquire %q: %w", name, ctx.Err())
	case c.tally.yes+c.tally.no < l.quorum():
		return nil, fmt.Errorf("acquire %q: %w", name, l.noQuorum(c.tally))
	case c.tally.no > 0:
		return nil, strategies.ErrHeld
	}
	return nil, fmt.Errorf("acquire %q: %d of %d nodes granted it, but too little of the lease's validity is left", name,
		c.tally.yes, len(l.nodes))
}

// begin checks the arguments of a call, and returns the lock's name and the TTL in whole milliseconds.
func (l *Locker) begin(key string, ttl time.Duration) (name string, whole time.Duration, err error) {
	if l.background.Closed() {
		return "", 0, strategies.ErrClosed
	}
	name, whole = l.config.Key(key), ttl.Truncate(time.Millisecond)
	if err := l.options.suits(whole); err != nil {
		return "", 0, fmt.Errorf("acquire %q: %w", name, err)
	}
	return name, whole, nil
}

// Close makes further acquires fail with ErrClosed. For at most two seconds it waits for calls that have exceeded the
// node timeout, and for the release of the locks that these calls took. Leases can still be released.
func (l *Locker) Close() error {
	deadline := time.Now().Add(bounded.Patience)
	late := time.AfterFunc(patience, l.stopUndo)
	l.background.Close()
	late.Stop()
	l.stopUndo()
	l.renewals.Close()
	var nodes sync.WaitGroup
	for _, n := range l.nodes {
		nodes.Go(func() { n.releases.CloseBy(deadline) })
	}
	nodes.Wait()
	l.sleepers.Close()
	return nil
}

// delay returns the random sleep before the next round.
func (l *Locker) delay() time.Duration {
	return l.options.MinDelay + rand.N(l.options.MaxDelay-l.options.MinDelay+1)
}

// noQuorum returns ErrNoQuorum with the error of one of the nodes.
func (l *Locker) noQuorum(t tally) error {
	return fmt.Errorf("%w: %d of %d nodes failed or did not reply: %w", strategies.ErrNoQuorum, t.failed, len(l.nodes),
		t.err)
}
