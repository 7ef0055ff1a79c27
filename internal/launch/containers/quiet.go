package containers

import (
	"os"
	"sync"

	"github.com/testcontainers/testcontainers-go/log"
)

// Quiet keeps testcontainers' own logger off the terminal: what matters of it comes back as
// errors. It also keeps it from starting its reaper, a second container with an image of
// its own; sweeping does that work. Both are settings of the process, which a command or a
// test makes, before it opens anything, and no library.
var Quiet = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})
