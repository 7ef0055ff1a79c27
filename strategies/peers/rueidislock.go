package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

const (
	// rueidisPrefix is rueidislock's default; our own prefix follows it.
	rueidisPrefix = "rueidislock"
	// againAfter is how long a waiter can sleep at most on a lock that is free, or on a lost server.
	againAfter = 2 * time.Second
	// settling is how long a caller waits at most for a clean-up, or for the answer to a PING.
	settling = 5 * time.Second
)

// errAgain ends a wait that starts over.
var errAgain = errors.New("wait again")

// RueidislockOptions tune rueidislock.
type RueidislockOptions struct {
	//nolint:lll // one tag
	Tuned bool `opt:"tuned" help:"as documented for one Redis: one key instead of three, no messages about own changes (Redis 7.0.5), no limit of 20 ms for a try"`
}

// Refine adapts the summary to one key.
func (o RueidislockOptions) Refine(info strategies.Info) strategies.Info {
	if o.Tuned {
		info.Summary = "redis/rueidis rueidislock: SET NX PXAT, woken by client-side caching"
	}
	return info
}

// Rueidislock has one rueidis client.
type Rueidislock struct {
	config goredis.Config
	peer   rueidislock.Locker
	keys   int         // per lock
	cut    atomic.Bool // no connection is made any more
	pinged atomic.Int64

	mu      sync.Mutex
	closed  bool
	held    map[*rueidisLease]struct{}
	running sync.WaitGroup // calls of rueidislock's that may outlast their caller
}

// OpenRueidislock returns a Locker on the first node, and connects to it.
func OpenRueidislock(config goredis.Config, options RueidislockOptions) (*Rueidislock, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	l := &Rueidislock{config: config, held: map[*rueidisLease]struct{}{}}
	client, err := l.client(config.Nodes[0].Options)
	if err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	set := rueidislock.LockerOption{
		KeyPrefix:    rueidisPrefix,
		KeyValidity:  config.TTL,
		KeyMajority:  2,
		ClientOption: client,
	}
	if options.Tuned {
		set.KeyMajority, set.NoLoopTracking, set.TryNextAfter = 1, true, config.TTL
	}
	l.keys = int(set.KeyMajority)*2 - 1
	if l.peer, err = rueidislock.NewLocker(set); err != nil {
		return nil, fmt.Errorf("connect rueidis: %w", err)
	}
	return l, nil
}

// client returns how a rueidis client connects to a node: with the name, the rights and the dialler of
// the node's own client, so that what it sends is counted too.
func (l *Rueidislock) client(o *redis.UniversalOptions) (rueidis.ClientOption, error) {
	switch {
	case o == nil:
		return rueidis.ClientOption{}, errors.New("the node has no options to dial with")
	case o.MasterName != "":
		return rueidis.ClientOption{}, errors.New("a client by way of Sentinel is not supported")
	case len(o.Addrs) == 0:
		return rueidis.ClientOption{}, errors.New("the node has no address")
	}
	dial := o.Dialer
	if dial == nil {
		simple := o.Simple()
		if simple.DialTimeout == 0 {
			simple.DialTimeout = 5 * time.Second // as go-redis
		}
		dial = redis.NewDialer(simple)
	}
	option := rueidis.ClientOption{
		InitAddress:       o.Addrs,
		ForceSingleClient: !o.IsClusterMode,
		Username:          o.Username,
		Password:          o.Password,
		ClientName:        o.ClientName,
		SelectDB:          o.DB,
		Dialer:            net.Dialer{Timeout: o.DialTimeout},
		// The dialler itself encrypts if the options say so.
		DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if l.cut.Load() { // a closed rueidis client dials again if it is called with a context that has ended
				return nil, net.ErrClosed
			}
			if strings.HasPrefix(address, "/") {
				return dial(ctx, "unix", address)
			}
			return dial(ctx, "tcp", address)
		},
	}
	if o.DisableIdentity {
		option.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	return option, nil
}

// Acquire waits with rueidislock's WithContext. It starts the wait over every two seconds if Redis still
// answers, because rueidislock may sleep on then.
func (l *Rueidislock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.peer.WithContext)
		if !errors.Is(err, errAgain) {
			return held, err
		}
		if err := l.ping(ctx); err != nil {
			return nil, fmt.Errorf("lock %q: %w", l.config.Key(key), err)
		}
	}
}

// TryAcquire tries once, with rueidislock's TryWithContext.
func (l *Rueidislock) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.peer.TryWithContext)
		switch {
		case errors.Is(err, rueidislock.ErrNotLocked):
			return nil, strategies.ErrHeld
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, errAgain):
			continue // its own limit for a try, which says nothing of the lock
		}
		return held, err
	}
}

// ping asks whether Redis can be reached, once a second for all waiters.
func (l *Rueidislock) ping(ctx context.Context) error {
	last, now := l.pinged.Load(), time.Now().UnixNano()
	if now-last < int64(time.Second) || !l.pinged.CompareAndSwap(last, now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	client := l.peer.Client()
	err := client.Do(ctx, client.B().Ping().Build()).Error()
	if err != nil { // the first PING may find a broken connection, and has the client dial again
		err = client.Do(ctx, client.B().Ping().Build()).Error()
	}
	if err != nil {
		return fmt.Errorf("cannot reach Redis: %w", err)
	}
	return nil
}

// rueidisResult is what rueidislock's calls return.
type rueidisResult struct {
	ctx     context.Context
	release context.CancelFunc
	err     error
}

type rueidisCall func(context.Context, string) (context.Context, context.CancelFunc, error)

func (l *Rueidislock) lock(ctx context.Context, key string, call rueidisCall) (strategies.Lease, error) {
	name := l.config.Key(key)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	// rueidislock keeps the lock until the context of its wait ends; a lease outlives its Acquire.
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := context.AfterFunc(ctx, func() { end(ctx.Err()) })
	again := time.AfterFunc(againAfter, func() { end(errAgain) })
	result, abandoned := make(chan rueidisResult), make(chan struct{})
	if !l.begin(func() {
		var r rueidisResult
		r.ctx, r.release, r.err = call(lasting, name)
		select {
		case result <- r:
		case <-abandoned:
			if r.err == nil {
				r.release()
			}
			end(nil)
		}
	}) {
		again.Stop()
		ended()
		end(nil)
		return nil, strategies.ErrClosed
	}
	got, returned := await(lasting, result)
	inTime := again.Stop()
	inTime = ended() && inTime && returned
	if got.err == nil && inTime {
		return l.grant(&rueidisLease{
			locker: l, name: name, ctx: got.ctx,
			release: func() { got.release(); end(nil) },
		}), nil
	}
	if got.err == nil {
		<-lasting.Done() // a function that could not be stopped may not have ended it yet
		if returned {
			got.release()
		}
	}
	if !returned {
		close(abandoned)
	}
	if cause := context.Cause(lasting); cause != nil {
		got.err = cause // rueidislock says only that the context has ended
	}
	end(nil)
	return nil, fmt.Errorf("lock %q: %w", name, got.err)
}

// await returns the result of a call, or false if the call goes on after its context's end: after a failed
// try rueidislock cleans up for as long as a TTL if Redis does not answer.
func await(lasting context.Context, result <-chan rueidisResult) (rueidisResult, bool) {
	select {
	case r := <-result:
		return r, true
	case <-lasting.Done():
	}
	timer := time.NewTimer(settling)
	defer timer.Stop()
	select {
	case r := <-result:
		return r, true
	case <-timer.C:
		return rueidisResult{}, false
	}
}

// begin starts do, and Close waits for it; false means that the Locker is closed.
func (l *Rueidislock) begin(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.running.Go(do)
	}
	return !l.closed
}

func (l *Rueidislock) grant(held *rueidisLease) *rueidisLease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[held] = struct{}{}
	return held
}

// Close closes the connections. rueidislock's own Close would release the leases, which only
// their holders may do: it is called when it can no longer do that.
func (l *Rueidislock) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	held := l.held
	l.held = nil
	l.mu.Unlock()

	for lease := range held {
		lease.remember()
	}
	l.cut.Store(true)
	l.peer.Client().Close()
	l.peer.Close()
	for lease := range held {
		lease.release() // waits for its goroutines
	}
	l.running.Wait()
	return nil
}

// rueidisLease is a lock that rueidislock keeps until it is released.
type rueidisLease struct {
	locker  *Rueidislock
	name    string
	ctx     context.Context // rueidislock ends it when it knows the lock to be lost
	release func()          // returns when all of its goroutines have ended
	left    []*token.Lease  // the keys of a lease that Close found held
}

// Lost returns a channel that is closed when a key was lost that the majority needs, and at
// the release.
func (held *rueidisLease) Lost() <-chan struct{} { return held.ctx.Done() }

// Release has rueidislock delete the keys. rueidislock does not say whether it could.
func (held *rueidisLease) Release(ctx context.Context) error {
	l := held.locker
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return held.releaseLeft(ctx)
	}
	delete(l.held, held)
	lost := held.ctx.Err() != nil
	released := make(chan struct{})
	l.running.Go(func() { // it ignores contexts
		defer close(released)
		held.release()
	})
	l.mu.Unlock()
	select {
	case <-released:
		return outcome(ctx, "release", held.name, lost, nil)
	case <-ctx.Done():
		return fmt.Errorf("release %q: %w", held.name, ctx.Err())
	}
}

// remember records what the keys hold, so that the lease can be released without rueidislock, which hides that
// value. All keys hold the same; a key that the majority did not need may still be on its way.
func (held *rueidisLease) remember() {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	client, keys := held.locker.config.Nodes[0].Client, held.locker.keys
	name := func(i int) string { return rueidisPrefix + ":" + strconv.Itoa(i) + ":" + held.name }
	holds := map[string]int{} // how many keys hold a value
	for i := range keys {
		if value, err := client.Get(ctx, name(i)).Result(); err == nil {
			holds[value]++
		}
	}
	if held.ctx.Err() != nil { // another holder may have the keys
		return
	}
	for value, n := range holds {
		for i := range keys {
			if n > keys/2 {
				held.left = append(held.left, &token.Lease{Client: client, Name: name(i), Token: value})
			}
		}
	}
}

// releaseLeft releases after Close.
func (held *rueidisLease) releaseLeft(ctx context.Context) error {
	freed := 0
	for _, key := range held.left {
		ok, err := key.Free(ctx)
		if err != nil {
			return fmt.Errorf("release %q: %w", held.name, err)
		}
		if ok {
			freed++
		}
	}
	held.left = nil
	return outcome(ctx, "release", held.name, freed <= held.locker.keys/2, nil)
}
