package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Swept lists what a sweep of this machine removed and skipped.
type Swept struct {
	Containers  []string // IDs
	Directories []string
	Skipped     []string // what was not examined or not removed, with the reason
}

// Add appends the lists of other, which is another sweep of this machine.
func (s *Swept) Add(other Swept) {
	s.Containers = append(s.Containers, other.Containers...)
	s.Directories = append(s.Directories, other.Directories...)
	s.Skipped = append(s.Skipped, other.Skipped...)
}

// Log calls logf once with the number of removed containers and directories, if any, and once for each thing that was
// skipped. logf may be nil.
func (s Swept) Log(logf func(format string, args ...any)) {
	if logf == nil {
		return
	}
	if n := len(s.Containers) + len(s.Directories); n > 0 {
		logf("removed leftovers of a killed lockbench: %d containers, %d directories", len(s.Containers),
			len(s.Directories))
	}
	for _, skipped := range s.Skipped {
		logf("not removed: %s", skipped)
	}
}

// SweepMachine does what Sweep does, and also removes the containers of killed lockbench processes. If no Engine
// responds, it records the containers as skipped, with the reason.
func SweepMachine(ctx context.Context) Swept {
	swept := Sweep(ctx)
	engine, err := OpenEngine(ctx)
	if errors.Is(err, ErrNoEngine) { // its advice applies only to programs that start containers
		err = errors.New("this program was built without a Docker client")
	}
	if err != nil {
		swept.Skipped = append(swept.Skipped, fmt.Sprintf("containers: %v", oneLine{err}))
		return swept
	}
	swept.Add(engine.Sweep(ctx))
	return swept
}

// Sweep removes the directories of servers whose lockbench was killed. The servers themselves ended together with
// lockbench. It does not touch directories of a live lockbench or of another user.
func Sweep(ctx context.Context) Swept {
	var swept Swept
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), homeOfProcess+"*")) // the pattern is valid
	for _, dir := range dirs {
		if ctx.Err() != nil {
			break
		}
		home, left := abandoned(dir)
		if !left {
			continue
		}
		if err := home.Remove(); err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("%s: %v", dir, err))
			continue
		}
		swept.Directories = append(swept.Directories, dir)
	}
	return swept
}
