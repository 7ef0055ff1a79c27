package containers

import (
	"os"
	"sync"

	"github.com/testcontainers/testcontainers-go/log"
)

// Quiet turns testcontainers' own logger off: important messages are also returned as errors. It also
// prevents its reaper, a second container with another image; Sweep does that work. Both are
// settings of the whole process, so only a command or a test calls Quiet, before it opens
// anything.
var Quiet = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})
