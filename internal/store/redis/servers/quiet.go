package servers

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Quiet turns go-redis's own logger off: important messages are also returned as errors. It is a
// setting of the whole process, so only a command or a test calls it, before it opens anything.
var Quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
