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

// ShortenedUnheard checks that a lease which Redis may have shortened is not relied on for longer.
func ShortenedUnheard(t *testing.T, variant string) {
	t.Parallel()
	p, a := hooked(t, redistest.Start(t), variant)
	lease := p.Acquire(t, "key")
	a.mode.Store(unheard)
	err := lease.(strategies.Extender).Extend(t.Context(), time.Second)
	if latest := time.Now().Add(time.Second); err == nil || lease.(strategies.Timed).ValidUntil().After(latest) {
		t.Errorf("shortened to a second (%v), it is said to be valid for %v", err, time.Until(lease.(strategies.Timed).ValidUntil()))
	}
	a.mode.Store(asTheyCome)
	if err := lease.(strategies.Extender).Extend(t.Context(), time.Minute); err != nil || time.Until(lease.(strategies.Timed).ValidUntil()) < 50*time.Second {
		t.Errorf("extended again (%v), it is said to be valid for %v", err, time.Until(lease.(strategies.Timed).ValidUntil()))
	}
}
