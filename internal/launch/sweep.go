package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Swept is what a sweep of this machine removed.
type Swept struct {
	Containers  []string // IDs
	Processes   []int    // process IDs of servers
	Directories []string
	Skipped     []string // what was not examined, and why
}

// Add joins what two sweeps removed.
func (s *Swept) Add(other Swept) {
	s.Containers = append(s.Containers, other.Containers...)
	s.Processes = append(s.Processes, other.Processes...)
	s.Directories = append(s.Directories, other.Directories...)
	s.Skipped = append(s.Skipped, other.Skipped...)
}

// Log reports what was removed, if anything, and what was skipped. logf may be nil.
func (s Swept) Log(logf func(format string, args ...any)) {
	if logf == nil {
		return
	}
	if n := len(s.Containers) + len(s.Processes) + len(s.Directories); n > 0 {
		logf("removed what a killed lockbench left: %d containers, %d processes, %d directories",
			len(s.Containers), len(s.Processes), len(s.Directories))
	}
	for _, skipped := range s.Skipped {
		logf("not swept: %s", skipped)
	}
}

// SweepMachine is Sweep; it also removes the containers of killed lockbench processes if an Engine
// answers.
func SweepMachine(ctx context.Context) Swept {
	swept := Sweep(ctx)
	engine, err := OpenEngine(ctx)
	if err != nil {
		swept.Skipped = append(swept.Skipped, fmt.Sprintf("containers: %v", oneLine{err}))
		return swept
	}
	swept.Add(engine.Sweep(ctx))
	return swept
}

// Sweep removes the processes and directories of Processes whose lockbench was killed. It does not
// touch what belongs to a live lockbench, to an unknown one, or to another user.
func Sweep(ctx context.Context) Swept {
	var swept Swept
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPattern+"*")) // the pattern is valid
	for _, dir := range dirs {
		if ctx.Err() != nil {
			break
		}
		who, abandoned := abandoned(dir)
		if !abandoned {
			continue
		}
		killed, err := who.killServer()
		swept.Processes = append(swept.Processes, killed...)
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process sweeps too
		}
		if err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("%s: %v", dir, err))
			continue
		}
		swept.Directories = append(swept.Directories, dir)
	}
	return swept
}

// abandoned returns the owner of a directory, and whether it has ended. Everybody can make files in
// the directory for temporary files, so only a directory of this user counts.
func abandoned(dir string) (owner, bool) {
	about, err := os.Lstat(dir)
	if err != nil || !about.IsDir() || !ours(about) {
		return owner{}, false
	}
	var who owner
	text, err := readOwner(filepath.Join(dir, ownerFile))
	if err == nil && json.Unmarshal(text, &who) == nil {
		return who, who.dead()
	}
	// Its creator was killed before it wrote the file, or is about to write it.
	const stale = time.Minute
	return owner{}, time.Since(about.ModTime()) > stale
}

// readOwner reads a regular file of this user, without following a link or waiting for a writer.
func readOwner(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|direct, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const most = 64 << 10
	if about, err := file.Stat(); err != nil || !about.Mode().IsRegular() || !ours(about) || about.Size() > most {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(file, most))
}
