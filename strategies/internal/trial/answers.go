package trial

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// answers is a hook that changes how the scripts of a client end.
type answers struct {
	mode atomic.Int32
	late chan func() // carries out what was held back
}

const (
	asTheyCome int32 = iota
	twice            // each is sent again, as by a client that retries after a lost answer
	unheard          // each is carried out, and its answer is lost
	heldBack         // each is carried out later, and its answer is lost
)

func (a *answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook is a redis.Hook's.
func (a *answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		mode := a.mode.Load()
		if name := cmd.Name(); mode == asTheyCome || name != "eval" && name != "evalsha" {
			return next(ctx, cmd)
		}
		if mode == heldBack {
			a.late <- func() { _ = next(context.WithoutCancel(ctx), redis.NewCmd(ctx, cmd.Args()...)) }
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		_ = next(ctx, cmd) // nobody hears the answer
		if mode == unheard {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		cmd.SetErr(nil)
		return next(ctx, cmd)
	}
}

// hooked starts a process with a hook for its answers.
func hooked(t *testing.T, server *redistest.Server, variant string) (Process, *answers) {
	t.Helper()
	p, a := Start(t, server, variant, time.Minute), &answers{late: make(chan func(), 1)}
	p.Config.Nodes[0].Client.AddHook(a)
	return p, a
}

// ShortenedUnheard checks that a lease which Redis has shortened, or may still shorten, is not
// relied on for longer.
func ShortenedUnheard(t *testing.T, variant string) {
	t.Parallel()
	server := redistest.Start(t)
	p, a := hooked(t, server, variant)
	for what, mode := range map[string]int32{"carried out": unheard, "held back": heldBack} {
		lease := p.Acquire(t, what)
		valid := func() time.Time { return lease.(strategies.Timed).ValidUntil() }
		for _, extension := range []struct {
			mode     int32
			ttl      time.Duration
			answered bool
		}{{mode, time.Second, false}, {asTheyCome, time.Minute, true}} {
			a.mode.Store(extension.mode)
			err := lease.(strategies.Extender).Extend(t.Context(), extension.ttl)
			if left := time.Until(valid()); (err == nil) != extension.answered || left > time.Second {
				t.Errorf("%s: extended by %v (%v), it is said to be valid for %v", what, extension.ttl, err, left)
			}
		}
		if left := time.Until(valid()); left < time.Second/2 {
			t.Errorf("%s: extended by a minute, it is said to be valid for %v", what, left)
		}
		if mode == heldBack {
			(<-a.late)()
		}
		for _, key := range server.Client(t).Keys(t.Context(), "*"+what+"*").Val() {
			left := server.Client(t).PTTL(t.Context(), key).Val()
			if end := time.Now().Add(left + time.Millisecond); left > 0 && end.Before(valid()) {
				t.Errorf("%s: %s runs out %v before the lease", what, key, valid().Sub(end))
			}
		}
	}
}
