package launch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A home is a directory for a server in the directory for temporary files. Its lockbench process keeps it locked, and
// the kernel ends the lock with the process, however it ends, so a home without a lock is abandoned. It does not
// matter which process ID an owner had, or in which PID namespace. Locks work on Linux only; elsewhere no home is
// abandoned.

// The prefixes of the names of homes.
const (
	homeOfProcess   = "lockbench-server-"
	homeOfContainer = "lockbench-container-"
)

// Home is such a directory, locked by this process.
type Home struct {
	Dir  string
	lock io.Closer // nil where there are no locks
}

// errLocked is the error for the home of a live lockbench process.
var errLocked = errors.New("another process has locked the directory")

// newHome makes a home.
func newHome(prefix string) (Home, error) {
	for {
		dir, err := os.MkdirTemp("", prefix+"*")
		if err != nil {
			return Home{}, err
		}
		lock, err := lockDir(dir)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return Home{Dir: dir}, nil
		case errors.Is(err, errLocked), errors.Is(err, fs.ErrNotExist): // a sweep came between the two, and removes it
			continue
		case err != nil:
			return Home{}, errors.Join(err, os.Remove(dir))
		}
		return Home{dir, lock}, nil
	}
}

// HomeOfContainer makes a home that stays empty: the container's label names it, see Abandoned.
func HomeOfContainer() (Home, error) { return newHome(homeOfContainer) }

// Abandoned returns the home of a container if its lockbench has ended. It is locked for the caller, who removes the
// container and then the home.
func Abandoned(dir string) (Home, bool) {
	if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), homeOfContainer) {
		return Home{}, false
	}
	return abandoned(dir)
}

// abandoned returns a home, locked, if it has no other lock. Every user can make files in the directory for temporary
// files, so only a directory in which this user alone can write counts.
func abandoned(dir string) (Home, bool) {
	about, err := os.Lstat(dir)
	if err != nil || !ours(about) {
		return Home{}, false
	}
	lock, err := lockDir(dir)
	return Home{dir, lock}, err == nil
}

// Leave ends the lock: a later sweep finds the home.
func (h Home) Leave() {
	if h.lock != nil {
		_ = h.lock.Close() // nothing was written
	}
}

// Remove removes the home with its contents.
func (h Home) Remove() error {
	defer h.Leave() // not before: a sweep would remove it at the same time
	return os.RemoveAll(h.Dir)
}
