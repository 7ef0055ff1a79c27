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

// patience is how long a process tries in all, whether Redis does not answer or does not serve,
// before a caller or its waiters get an error.
const patience = 2 * time.Second

// patient bounds what a step does that began then by patience. What it ends, ends with errOutage.
func patient(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, began.Add(patience), errOutage)
}

var errOutage = fmt.Errorf("Redis has not answered for %v", patience)

// because returns errOutage in place of the error of a ctx that has ended with it.
func because(ctx context.Context, err error) error {
	if err != nil && err == ctx.Err() && context.Cause(ctx) == errOutage { //nolint:errorlint // their very own
		return errOutage
	}
	return err
}

// node is Redis as a process talks to it: through one pipeline, which never sends a command
// twice by itself.
type node struct {
	conn    *pipeline.Conn
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil without a cluster
	ids     *ids
	demoted func() // called when the server says that it is no primary any more

	served  atomic.Int32 // whether it has run a script, which a client of one node of a cluster cannot: see serves
	native  token.Native // how free deletes a key
	finding atomic.Bool  // a release finds out which command the server has for it
}

// run runs a script that may give the lock to the next.
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

// serves says whether the node runs scripts, as far as is known. It is false for one caller at a time, which must run
// one. Others need not: thousands of first releases would each have one.
func (n *node) serves() bool { return !n.served.CompareAndSwap(0, serving) }

// free releases a lock for which nobody waits, and says whether it did: somebody may wait, or the lock may not be the
// caller's. The first release finds out whether the server has a command for that; others use the script until then.
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
		// What Redis refuses to all may be because of one of them.
		if _, refused := errors.AsType[redis.Error](err); !refused || n.passes(err) {
			return reply == any(int64(1)), n.refused(on, err)
		}
	}
	reply, err := n.eval(ctx, freeScript, on, []any{"evalsha", &freeScript.hash, 1, &on.lock, id})
	all, _ := reply.([]any)
	return len(all) == 1 && all[0] == any(int64(1)), err
}

// eval runs a script by EVALSHA, from its source if Redis does not know it.
func (n *node) eval(ctx context.Context, s *script, on *names, evalsha []any) (reply any, err error) {
	if reply, err = n.do(ctx, evalsha...); err != nil && says(err, "NOSCRIPT") {
		reply, err = n.do(ctx, slices.Concat([]any{"eval", &s.source}, evalsha[2:])...)
	}
	return reply, n.refused(on, err)
}

// do sends a command, and returns its reply. It takes pointers to strings, which cost no allocation.
func (n *node) do(ctx context.Context, words ...any) (reply any, err error) {
	command := redis.NewCmd(ctx, words...)
	if err = n.conn.Send(ctx, command); err != nil {
		return nil, err
	}
	return command.Result()
}

// undialled says that there was no connection.
func undialled(err error) bool {
	network, is := errors.AsType[*net.OpError](err)
	return is && network.Op == "dial"
}

// passes says whether to try again after err: Redis has said that it ran nothing, and may run it soon, or on another
// node. Or there was no connection yet.
func (n *node) passes(err error) bool {
	if undialled(err) {
		return true
	}
	if n.cluster == nil && says(err, "MOVED", "ASK") { // no other try goes elsewhere
		return false
	}
	return says(err, "READONLY", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING")
}

// take takes a free lock, without a script where two commands can go together. It returns the
// owner and, if that is id and timed, Redis's time in µs after the grant.
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
		if owner, err = set.Text(); err == redis.Nil { //nolint:errorlint // Redis's own
			owner, err = *id, nil
		}
	}
	if err != nil {
		return "", 0, n.refused(on, err)
	}
	return strings.TrimSuffix(owner, "+"), clock, nil
}

// refused takes an error of Redis's: it looks for the primary, or adds what the service can do about it.
func (n *node) refused(on *names, err error) error {
	switch {
	case err == nil:
		return nil
	case says(err, "READONLY", "MASTERDOWN"): // no longer a primary: its name may lead to another server
		n.demoted()
	case says(err, "WRONGTYPE"):
		return fmt.Errorf("%q, or its queue, is another program's key, such as Redisson's: %w", on.lock, err)
	case n.cluster == nil && says(err, "MOVED", "ASK", "CROSSSLOT"):
		return fmt.Errorf("the client has one node of a cluster, make it with redis.NewClusterClient: %w", err)
	}
	return err
}

// follow queues an entry behind others, if there are any. It returns the length of the queue,
// 0 if there was none.
func (n *node) follow(ctx context.Context, queue, entry string) (int64, error) {
	reply, err := n.do(ctx, "rpushx", &queue, &entry)
	length, ok := reply.(int64)
	if err == nil && !ok {
		err = unexpected("RPUSHX", reply)
	}
	return length, err
}

// at returns the client to listen with: in a cluster that of the lock's node.
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

// says reports whether err is an error of Redis that begins with one of those words.
func says(err error, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return redis.HasErrorPrefix(err, word) })
}

// unexpected is for an answer that no script of ours gives.
func unexpected(to string, reply any) error {
	return fmt.Errorf("Redis answered %s: %v", to, reply)
}

// pair reads two numbers.
func pair(reply any) (a, b int64, ok bool) {
	numbers, _ := reply.([]any)
	if len(numbers) != 2 {
		return 0, 0, false
	}
	a, first := numbers[0].(int64)
	b, second := numbers[1].(int64)
	return a, b, first && second
}

// lost says that a command may have been carried out although it ended with an error.
func lost(err error) bool { return indeterminate.MayHaveRun(err) }

// retry is the pauses between tries.
type retry struct {
	pause time.Duration // the next
	end   time.Time
}

// wait pauses, longer each time. It returns false after patience, or when ctx ends.
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

// persist tries again what ended without an answer, and what Redis may run soon, for patience, and until ctx ends or
// the Locker is closed. doubtful means that Redis may have carried out a try that it did not answer.
func (l *Locker) persist(ctx context.Context, try func(context.Context) error) (doubtful bool, err error) {
	// No deadline bounds the first try: Redis may be slow, and the pipeline ends a command when Redis answers none.
	began := time.Now()
	if err = try(ctx); err == nil {
		return false, nil
	}
	ctx, done := patient(ctx, began)
	defer done()
	var refused error // why there was no connection, while go-redis still tries to make one
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
