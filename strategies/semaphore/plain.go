package semaphore

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

var (
	//go:embed prepare.lua
	prepareSource string
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string

	prepareScript = redis.NewScript(prepareSource)
	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
)

// plain are permits without a name.
type plain struct {
	client  redis.UniversalClient
	permits int
	look    time.Duration  // how long to park; only a message tells of a release
	asking  sync.WaitGroup // acquires on their way
}

func (*plain) scripts() []*redis.Script {
	return []*redis.Script{prepareScript, acquireScript, releaseScript}
}

// term ignores the TTL: plain permits do not run out.
func (*plain) term(time.Duration) (time.Duration, error) { return 0, nil }

func (p *plain) take(ctx context.Context, name string, topic redisson.Topic, _ time.Duration) (strategies.Lease,
	time.Duration, error,
) {
	taken, err := p.ask(ctx, name, topic)
	if err != nil || !taken {
		return nil, p.look, err
	}
	return &plainPermit{client: p.client, name: name, topic: topic}, 0, nil
}

// ask waits for the answer even if its caller does not: afterwards nothing in Redis would
// show whether the permit was granted. A permit that comes too late goes back.
func (p *plain) ask(ctx context.Context, name string, topic redisson.Topic) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	type answer struct {
		taken bool
		err   error
	}
	answered := make(chan answer)
	p.asking.Go(func() {
		taken, err := acquireScript.Run(context.WithoutCancel(ctx), p.client, []string{name},
			p.permits, topic.Channel, topic.Command()).Bool()
		select {
		case answered <- answer{taken, err}:
		case <-ctx.Done():
			if taken {
				settle, done := indeterminate.Settle(ctx)
				defer done()
				// Nothing more can be done about a failure here.
				_ = releaseScript.Run(settle, p.client, []string{name}, topic.Channel, topic.Command()).Err()
			}
		}
	})
	select {
	case a := <-answered:
		return a.taken, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (p *plain) close() { p.asking.Wait() }

// plainPermit is a permit held.
type plainPermit struct {
	client   redis.UniversalClient
	name     string
	topic    redisson.Topic
	released atomic.Bool
}

// Release gives the permit back, once: Redis could not tell a second release from that of
// another holder.
func (held *plainPermit) Release(ctx context.Context) error {
	if held.released.Swap(true) {
		return strategies.ErrNotHeld
	}
	there, err := releaseScript.Run(ctx, held.client, []string{held.name},
		held.topic.Channel, held.topic.Command()).Bool()
	if err != nil {
		// If it may have been carried out it counts as released: a permit too few is the
		// lesser evil.
		held.released.Store(indeterminate.MayHaveRun(err))
		return fmt.Errorf("release %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	if !there {
		return strategies.ErrNotHeld
	}
	return nil
}
