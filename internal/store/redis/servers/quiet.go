package servers

import (
	"context"
	"os"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go/log"
)

// Quiet keeps the libraries' own loggers off the terminal: what matters of it
// comes back as errors. It also keeps testcontainers from starting its reaper, a
// second container with an image of its own; sweeping does that work. All three are
// settings of the process, which a command or a test makes, before it opens anything, and
// no library.
func Quiet() { quiet() }

var quiet = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	redis.SetLogger(silence{})
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
