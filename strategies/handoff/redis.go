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

// patience is how long a process keeps trying while Redis does not reply or refuses commands. After that its callers
// get an error.
const patience = 2 * time.Second

// patient returns a context that ends patience after the beginning of a step, with errOutage as its cause.
func patient(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, began.Add(patience), errOutage)
}

var errOutage = fmt.Errorf("Redis has not answered for %v", patience)

// because returns err, or errOutage if err is the error of a ctx that patient has ended.
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

	served  atomic.Int32 // whether a script has succeeded, see serves; a single-node client to a cluster runs none
	native  token.Native // the command with which free deletes a key
	finding atomic.Bool  // a release is finding out which of these commands the server has
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

// serves reports whether a release may skip the script. Until the first script has succeeded, it returns false to one
// caller at a time, which then runs a script as a test. Other callers get true, because otherwise each of thousands of
// concurrent first releases would run a script.
func (n *node) serves() bool { return !n.served.CompareAndSwap(0, serving) }

// free releases a lock without waiters. It reports false if a client may be waiting or if the caller does not have the
// lock. The first release finds out whether the server has a command for this; until that is known, other releases use
// the script.
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
		// The script of the pipeline releases several locks. If Redis refuses it, another lock may be the cause, so this lock
		// is then released separately.
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

// do sends a command and returns its reply. Strings are passed as pointers, which avoids an allocation.
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

// passes reports whether a try can be repeated after err: either no connection could be made, or Redis has refused the
// command without running it, and may accept it soon or on another node.
func (n *node) passes(err error) bool {
	if undialled(err) {
		return true
	}
	if n.cluster == nil && says(err, "MOVED", "ASK") { // the client sends each try to the same node
		return false
	}
	return says(err, "READONLY", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING")
}

// take takes a free lock, without a script if SET and TIME can share a round trip. It returns the owner. If the owner
// is id and timed is true, it also returns Redis's time in µs after the grant.
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

// refused handles an error reply of Redis: it calls demoted if the server is not a primary, or adds an explanation to
// the error.
func (n *node) refused(on *names, err error) error {
	switch {
	case err == nil:
		return nil
	case says(err, "READONLY", "MASTERDOWN"): // no longer a primary; its host name may now lead to another server
		n.demoted()
	case says(err, "WRONGTYPE"):
		return fmt.Errorf("%q, or its queue, is another program's key, such as Redisson's: %w", on.lock, err)
	case n.cluster == nil && says(err, "MOVED", "ASK", "CROSSSLOT"):
		return fmt.Errorf("the client connects to a single node of a cluster: create it with redis.NewClusterClient: %w", err)
	}
	return err
}

// follow queues an entry behind other entries. It returns the length of the queue, or 0 if the queue was empty and the
// entry was not queued.
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

// unexpected returns the error for a reply that no script of this package returns.
func unexpected(to string, reply any) error {
	return fmt.Errorf("unexpected reply of Redis to %s: %v", to, reply)
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

// retry computes the pauses between tries: from 20 ms, doubling up to 500 ms, until patience is over.
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

// persist calls try, and repeats it while it gets no reply or Redis refuses it temporarily, until patience is over, ctx
// ends or the Locker is closed. doubtful means that Redis may have executed a try to which no reply arrived.
func (l *Locker) persist(ctx context.Context, try func(context.Context) error) (doubtful bool, err error) {
	// No deadline bounds the first try, because Redis may only be slow, and the pipeline ends a command when Redis has
	// replied to no command for patience.
	began := time.Now()
	if err = try(ctx); err == nil {
		return false, nil
	}
	ctx, done := patient(ctx, began)
	defer done()
	var refused error // the last dial error, which explains a later try that ends without a connection
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
