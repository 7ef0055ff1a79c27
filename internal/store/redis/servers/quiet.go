package servers

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Quiet keeps go-redis's own logger off the terminal: what matters of it comes back as
// errors. It is a setting of the process, which a command or a test makes, before it opens
// anything, and no library.
var Quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
