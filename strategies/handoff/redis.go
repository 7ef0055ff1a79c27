package handoff

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// patience is how long a process tries in total, while Redis does not answer or refuses to serve, before its callers
// get an error.
const patience = 2 * time.Second

// patient returns a context that ends patience after the beginning of a step, with errOutage as its cause.
func patient(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, began.Add(patience), errOutage)
}

var errOutage = fmt.Errorf("Redis has not answered for %v", patience)

// because returns errOutage in place of the error of a ctx whose cause is errOutage.
func because(ctx context.Context, err error) error {
	if err != nil && err == ctx.Err() && context.Cause(ctx) == errOutage { //nolint:errorlint // only exactly these errors
		return errOutage
	}
	return err
}

// node is a process's access to Redis, through one pipeline, which never repeats a command by itself.
type node struct {
	conn    *pipeline.Conn
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil without a cluster
	ids     *ids
	demoted func() // called when the server reports that it is no longer a primary

	served  atomic.Int32 // whether the node has run a script, see serves; the client of one node of a cluster cannot
	native  token.Native // the command with which free deletes a key
	finding atomic.Bool  // a release is finding out which command the server has
}

// run runs a script that may grant the lock to the next waiter.
func (n *node) run(ctx context.Context, s *script, on *names, args ...any) (reply any, err error) {
	words := make([]any, 0, 16)
	words = append(words, "evalsha", &s.hash, 2, &on.lock, &on.queue, &on.base, &n.ids.process)
	if reply, err = n.eval(ctx, s, on, append(words, args...)); err == nil {
		n.served.Store(hasServed)
	} else {
		n.served.CompareAndSwap(serving, 0)
	}
	return reply, err
}

const (
	serving   = 1 // a first script is under way
	hasServed = 2
)

// serves reports whether the node is known to run scripts. It is false for one caller at a time, which must run a
// script. Other callers need not, because otherwise each of thousands of first releases would run one.
func (n *node) serves() bool { return !n.served.CompareAndSwap(0, serving) }

// free releases a lock without waiters. It reports false if a client may wait or if the caller does not have the
// lock. The first release finds out whether the server has a command for this; until then the others use the script.
func (n *node) free(ctx context.Context, on *names, id *string) (freed bool, err error) {
	if !n.native.Known() {
		if !n.finding.CompareAndSwap(false, true) {
			return n.freeByScript(ctx, on, id)
		}
		defer n.finding.Store(false)
	}
	freed, err = n.native.Delete(&on.lock, id, func(words ...any) (any, error) { return n.do(ctx, words...) })
	if errors.Is(err, token.ErrNoNative) {
		return n.freeByScript(ctx, on, id)
	}
	return freed, n.refused(on, err)
}

func (n *node) freeByScript(ctx context.Context, on *names, id *string) (freed bool, err error) {
	if n.cluster == nil {
		reply, err := n.conn.Run(ctx, &on.lock, id)
		// If Redis refuses a script for several locks, one of them may be the cause.
		if _, refused := errors.AsType[redis.Error](err); !refused || n.passes(err) {
			return reply == any(int64(1)), n.refused(on, err)
		}
	}
	reply, err := n.eval(ctx, freeScript, on, []any{"evalsha", &freeScript.hash, 1, &on.lock, id})
	all, _ := reply.([]any)
	return len(all) == 1 && all[0] == any(int64(1)), err
}

// eval runs a script by EVALSHA, or by EVAL if Redis does not know it.
func (n *node) eval(ctx context.Context, s *script, on *names, evalsha []any) (reply any, err error) {
	if reply, err = n.do(ctx, evalsha...); err != nil && says(err, "NOSCRIPT") {
		reply, err = n.do(ctx, slices.Concat([]any{"eval", &s.source}, evalsha[2:])...)
	}
	return reply, n.refused(on, err)
}

// do sends a command and returns its reply. It takes pointers to strings, because these cost no allocation.
func (n *node) do(ctx context.Context, words ...any) (reply any, err error) {
	command := redis.NewCmd(ctx, words...)
	if err = n.conn.Send(ctx, command); err != nil {
		return nil, err
	}
	return command.Result()
}

// undialled reports whether err means that no connection could be made.
func undialled(err error) bool {
	network, is := errors.AsType[*net.OpError](err)
	return is && network.Op == "dial"
}

// passes reports whether a try can be repeated after err: Redis has answered that it ran nothing and may run the
// command soon or on another node, or there was no connection yet.
func (n *node) passes(err error) bool {
	if undialled(err) {
		return true
	}
	if n.cluster == nil && says(err, "MOVED", "ASK") { // the client sends each try to the same node
		return false
	}
	return says(err, "READONLY", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING")
}

// take takes a free lock, without a script if two commands can go in one round trip. It returns the owner and, if the
// owner is id and timed is true, the time of Redis in µs after the grant.
func (n *node) take(
	ctx context.Context, on *names, id *string, ttl int64, timed bool,
) (owner string, clock int64, err error) {
	if n.cluster != nil && timed {
		reply, err := n.run(ctx, queueScript, on, id, ttl, "try")
		if grantMsg, ok := reply.(string); ok && err == nil {
			owner, clock, _, _ = n.ids.parse(grantMsg)
		}
		return owner, clock, err
	}
	set := redis.NewCmd(ctx, "set", &on.lock, id, "px", ttl, "nx", "get")
	if timed {
		clock, err = n.conn.SendTimed(ctx, set)
	} else {
		err = n.conn.Send(ctx, set)
	}
	if err == nil {
		if owner, err = set.Text(); err == redis.Nil { //nolint:errorlint // never wrapped here
			owner, err = *id, nil
		}
	}
	if err != nil {
		return "", 0, n.refused(on, err)
	}
	return strings.TrimSuffix(owner, "+"), clock, nil
}

// refused handles an error reply of Redis: it starts the search for the primary, or adds a remedy to the error.
func (n *node) refused(on *names, err error) error {
	switch {
	case err == nil:
		return nil
	case says(err, "READONLY", "MASTERDOWN"): // no longer a primary, so its name may lead to another server
		n.demoted()
	case says(err, "WRONGTYPE"):
		return fmt.Errorf("%q, or its queue, is another program's key, such as Redisson's: %w", on.lock, err)
	case n.cluster == nil && says(err, "MOVED", "ASK", "CROSSSLOT"):
		return fmt.Errorf("the client connects to a single node of a cluster: create it with redis.NewClusterClient: %w", err)
	}
	return err
}

// follow queues an entry behind other entries, if there are any. It returns the length of the queue, 0 if there was
// none.
func (n *node) follow(ctx context.Context, queue, entry string) (int64, error) {
	reply, err := n.do(ctx, "rpushx", &queue, &entry)
	length, ok := reply.(int64)
	if err == nil && !ok {
		err = unexpected("RPUSHX", reply)
	}
	return length, err
}

// at returns the client for subscriptions: in a cluster the client of the lock's node.
func (n *node) at(ctx context.Context, lock string, again bool) (redis.UniversalClient, error) {
	if n.cluster == nil {
		return n.client, nil
	}
	if again {
		n.cluster.ReloadState(ctx)
	}
	master, err := n.cluster.MasterForKey(ctx, lock)
	if err != nil {
		return nil, err
	}
	return master, nil
}

// says reports whether err is an error reply of Redis that begins with one of the words.
func says(err error, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return redis.HasErrorPrefix(err, word) })
}

// unexpected returns the error for an answer that no script of this package gives.
func unexpected(to string, reply any) error {
	return fmt.Errorf("Redis answered %s with %v", to, reply)
}

// pair reads a reply of two numbers.
func pair(reply any) (a, b int64, ok bool) {
	numbers, _ := reply.([]any)
	if len(numbers) != 2 {
		return 0, 0, false
	}
	a, first := numbers[0].(int64)
	b, second := numbers[1].(int64)
	return a, b, first && second
}

// lost reports whether Redis may have executed a command that ended with err.
func lost(err error) bool { return indeterminate.MayHaveRun(err) }

// retry computes the pauses between tries.
type retry struct {
	pause time.Duration // the next pause
	end   time.Time
}

// wait pauses, each time longer. It returns false after patience, or when ctx ends.
func (r *retry) wait(ctx context.Context) bool {
	if r.pause == 0 {
		r.pause, r.end = 20*time.Millisecond, time.Now().Add(patience)
	}
	if time.Now().After(r.end) {
		return false
	}
	d := r.pause
	r.pause = min(2*d, 500*time.Millisecond)
	return pause.Plain(ctx.Done(), d)
}

// persist repeats a try that got no answer or that Redis may execute soon, for patience at most and until ctx ends or
// the Locker is closed. doubtful means that Redis may have executed a try that it did not answer.
func (l *Locker) persist(ctx context.Context, try func(context.Context) error) (doubtful bool, err error) {
	// No deadline bounds the first try, because Redis may be slow, and the pipeline ends a command when Redis answers no
	// command.
	began := time.Now()
	if err = try(ctx); err == nil {
		return false, nil
	}
	ctx, done := patient(ctx, began)
	defer done()
	var refused error // the reason for a missing connection, while go-redis still tries to make one
	for r := (retry{}); ; err = try(ctx) {
		doubtful = doubtful || lost(err)
		if undialled(err) {
			refused = err
		} else if refused != nil && lost(err) {
			err = fmt.Errorf("%w: %w", err, refused)
		}
		if err == nil || !doubtful && !l.redis.passes(err) || l.ctx.Err() != nil || !r.wait(ctx) {
			return doubtful, because(ctx, err)
		}
	}
}
