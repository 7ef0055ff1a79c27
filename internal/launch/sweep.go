package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Swept is what a sweep of this machine removed.
type Swept struct {
	Containers  []string // IDs
	Directories []string
	Skipped     []string // what was not examined, and why
}

// Add joins what two sweeps removed.
func (s *Swept) Add(other Swept) {
	s.Containers = append(s.Containers, other.Containers...)
	s.Directories = append(s.Directories, other.Directories...)
	s.Skipped = append(s.Skipped, other.Skipped...)
}

// Log reports what was removed, if anything, and what was skipped. logf may be nil.
func (s Swept) Log(logf func(format string, args ...any)) {
	if logf == nil {
		return
	}
	if n := len(s.Containers) + len(s.Directories); n > 0 {
		logf("removed what a killed lockbench left: %d containers, %d directories", len(s.Containers),
			len(s.Directories))
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
	if errors.Is(err, ErrNoEngine) { // its advice is for programs that are to start one
		err = errors.New("this program was built without a client for them")
	}
	if err != nil {
		swept.Skipped = append(swept.Skipped, fmt.Sprintf("containers: %v", oneLine{err}))
		return swept
	}
	swept.Add(engine.Sweep(ctx))
	return swept
}

// Sweep removes the directories of servers whose lockbench was killed. It does not touch what belongs to a
// live lockbench, to an unknown one, or to another user. The server itself ended with its lockbench.
func Sweep(ctx context.Context) Swept {
	var swept Swept
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPattern+"*")) // the pattern is valid
	for _, dir := range dirs {
		if ctx.Err() != nil {
			break
		}
		if !abandoned(dir) {
			continue
		}
		switch err := os.RemoveAll(dir); {
		case errors.Is(err, fs.ErrNotExist): // another process sweeps too
		case err != nil:
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("%s: %v", dir, err))
		default:
			swept.Directories = append(swept.Directories, dir)
		}
	}
	return swept
}

// abandoned says whether the owner of a directory has ended. Everybody can make files in the directory for
// temporary files, so only a directory in which this user alone can write counts.
func abandoned(dir string) bool {
	about, err := os.Lstat(dir)
	if err != nil || !about.IsDir() || !ours(about) {
		return false
	}
	if text, err := os.ReadFile(filepath.Join(dir, ownerFile)); err == nil && json.Valid(text) {
		return Orphaned(string(text))
	}
	// Its creator was killed before it wrote the file, or is about to write it.
	const stale = time.Minute
	return time.Since(about.ModTime()) > stale
}

// owner identifies the lockbench process that started a server, so that another process can check
// whether it is alive. The system reuses pids; with the start time, a pid is unique in its space.
type owner struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // in the kernel's form; "" if not known, as everywhere but on Linux
	Space   string `json:"space"`   // of the pid
	Host    string `json:"host"`
	RunID   string `json:"run_id,omitempty"`
}

// thisProcess returns the owner for this process.
func thisProcess(runID string) owner {
	host, _ := os.Hostname() // only compared; "" equals "" on one machine
	return owner{os.Getpid(), startTime(os.Getpid()), pidSpace(), host, runID}
}

// dead says that the owner has certainly ended. An owner on another host, in another pid
// namespace or before a reboot cannot be seen from here, and counts as alive; so does any where start times are not
// known.
func (o owner) dead() bool {
	here := thisProcess("")
	return o.Started != "" && o.Host == here.Host && o.Space == here.Space && o.Started != startTime(o.PID)
}

// Note identifies this process and its run as JSON, to be attached to what is started elsewhere.
func Note(runID string) (string, error) {
	note, err := json.Marshal(thisProcess(runID))
	return string(note), err
}

// Orphaned says that the process in a Note has certainly ended.
func Orphaned(note string) bool {
	var who owner
	return json.Unmarshal([]byte(note), &who) == nil && who.dead()
}
