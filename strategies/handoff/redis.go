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

// patience is how long a process keeps trying while Redis does not reply or refuses commands temporarily. After that
// its callers get an error.
const patience = 2 * time.Second

// patient returns a context that ends when patience has passed since began. The cause of its end is errOutage.
func patient(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, began.Add(patience), errOutage)
}

var errOutage = fmt.Errorf("Redis has not replied for %v", patience)

// because replaces err by errOutage if err is the error of ctx and ctx ended because patience had passed.
func because(ctx context.Context, err error) error {
	if err != nil && err == ctx.Err() && context.Cause(ctx) == errOutage { //nolint:errorlint // only exactly these errors
		return errOutage
	}
	return err
}

// node is a process's access to Redis, through one pipeline. The pipeline never repeats a command.
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

// run runs a script on the keys of a lock. It also records for serves whether the script succeeded.
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

// serves reports whether a release may skip the script. It returns false to one caller at a time until a script has
// succeeded; that caller runs a script as a test. All other callers get true, because otherwise each of thousands of
// concurrent first releases would run a script.
func (n *node) serves() bool { return !n.served.CompareAndSwap(0, serving) }

// free releases a lock without waiters by one command. It returns false if a client may be waiting or if the caller
// does not have the lock. The first release tries the commands that delete a key by its value, which only newer servers
// have. Until it is known whether the server has them, concurrent releases use the script free.lua.
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
		// The pipeline combines the releases of several locks in one script. If Redis refuses that script, another lock may
		// be the cause, so this lock is then released separately.
		if _, refused := errors.AsType[redis.Error](err); !refused || n.passes(err) {
			return reply == any(int64(1)), n.refused(on, err)
		}
	}
	reply, err := n.eval(ctx, freeScript, on, []any{"evalsha", &freeScript.hash, 1, &on.lock, id})
	all, _ := reply.([]any)
	return len(all) == 1 && all[0] == any(int64(1)), err
}

// eval runs a script by EVALSHA, or by EVAL if the server's script cache does not have it.
func (n *node) eval(ctx context.Context, s *script, on *names, evalsha []any) (reply any, err error) {
	if reply, err = n.do(ctx, evalsha...); err != nil && hasReplyPrefix(err, "NOSCRIPT") {
		reply, err = n.do(ctx, slices.Concat([]any{"eval", &s.source}, evalsha[2:])...)
	}
	return reply, n.refused(on, err)
}

// do sends a command and returns its reply. Callers pass strings as pointers, which avoids an allocation.
func (n *node) do(ctx context.Context, words ...any) (reply any, err error) {
	command := redis.NewCmd(ctx, words...)
	if err = n.conn.Send(ctx, command); err != nil {
		return nil, err
	}
	return command.Result()
}

// undialled reports whether err means that no connection could be made, so no command was sent.
func undialled(err error) bool {
	network, is := errors.AsType[*net.OpError](err)
	return is && network.Op == "dial"
}

// passes reports whether a try that ended with err can be repeated. It can if no connection could be made. It also can
// if Redis has refused the command without running it, and the same node or another may soon accept it.
func (n *node) passes(err error) bool {
	if undialled(err) {
		return true
	}
	if n.cluster == nil && hasReplyPrefix(err, "MOVED", "ASK") { // the client sends each try to the same node
		return false
	}
	return hasReplyPrefix(err, "READONLY", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING")
}

// take takes a free lock. It needs no script if SET and TIME can share a round trip. It returns the owner. If the owner
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

// refused handles an error reply of Redis. It calls demoted if the server is not a primary. If another program uses the
// key, or if the client is for a single node of a cluster, refused adds an explanation to the error.
func (n *node) refused(on *names, err error) error {
	switch {
	case err == nil:
		return nil
	case hasReplyPrefix(err, "READONLY", "MASTERDOWN"): // its host name may now lead to another server
		n.demoted()
	case hasReplyPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("the key %q, or its queue, belongs to another program, such as Redisson: %w", on.lock, err)
	case n.cluster == nil && hasReplyPrefix(err, "MOVED", "ASK", "CROSSSLOT"):
		return fmt.Errorf("the client connects to a single node of a cluster: "+
			"create the client with redis.NewClusterClient: %w", err)
	}
	return err
}

// follow queues an entry by RPUSHX. It returns the length of the queue, or 0 if the queue was empty and RPUSHX
// therefore did nothing.
func (n *node) follow(ctx context.Context, queue, entry string) (int64, error) {
	reply, err := n.do(ctx, "rpushx", &queue, &entry)
	length, ok := reply.(int64)
	if err == nil && !ok {
		err = unexpected("RPUSHX", reply)
	}
	return length, err
}

// at returns the client on which to subscribe for a lock: the service's client, or in a cluster the client of the
// lock's master. If again is true, the cluster's slots are reloaded first.
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

// hasReplyPrefix reports whether err is an error reply of Redis that begins with one of the words.
func hasReplyPrefix(err error, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return redis.HasErrorPrefix(err, word) })
}

// unexpected returns the error for a reply whose form is not the one that the lock expects.
func unexpected(to string, reply any) error {
	return fmt.Errorf("unexpected reply from Redis to %s: %v", to, reply)
}

func pair(reply any) (a, b int64, ok bool) {
	numbers, _ := reply.([]any)
	if len(numbers) != 2 {
		return 0, 0, false
	}
	a, first := numbers[0].(int64)
	b, second := numbers[1].(int64)
	return a, b, first && second
}

// lost reports whether Redis may have executed a command that returned err.
func lost(err error) bool { return indeterminate.MayHaveRun(err) }

// retry makes pauses between repeated tries: 20 ms at first, then twice as long each time, up to 500 ms.
type retry struct {
	pause time.Duration // the next pause
	end   time.Time
}

// wait pauses before the next try. It returns false if patience has passed since its first call, or if ctx has ended.
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

// persist calls try, and repeats the call while Redis does not reply or temporarily refuses the command. It stops when
// patience has passed, when ctx ends or when the Locker is closed. doubtful is true if Redis may have executed a try
// whose reply was lost.
func (l *Locker) persist(ctx context.Context, try func(context.Context) error) (doubtful bool, err error) {
	// The first try has no deadline, because Redis may only be slow. The pipeline ends this try once Redis has not replied
	// to any command for the duration patience.
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
