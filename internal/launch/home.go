package launch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A home is a directory for one server, in the directory for temporary files. The lockbench process that started the
// server keeps the home locked. The kernel ends the lock with the process, however the process ends, so an unlocked
// home is abandoned. This works whatever process ID the owner had, and in whatever PID namespace. Locks exist on Linux
// only; on other systems no home counts as abandoned.

// The prefixes of the names of homes.
const (
	homeOfProcess   = "lockbench-server-"
	homeOfContainer = "lockbench-container-"
)

// Home is a home that this process has locked.
type Home struct {
	Dir  string
	lock io.Closer // nil on systems without these locks
}

// errLocked is the error for the home of a live lockbench process.
var errLocked = errors.New("another process has locked the directory")

// newHome creates a home and locks it.
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
		case errors.Is(err, errLocked), errors.Is(err, fs.ErrNotExist): // a sweep locked it first, and removes it
			continue
		case err != nil:
			return Home{}, errors.Join(err, os.Remove(dir))
		}
		return Home{dir, lock}, nil
	}
}

// HomeOfContainer creates a home that stays empty. The container's label names it, see Abandoned.
func HomeOfContainer() (Home, error) { return newHome(homeOfContainer) }

// Abandoned returns the home of a container if its lockbench has ended. The home is locked for the caller, who removes
// the container and then the home.
func Abandoned(dir string) (Home, bool) {
	if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), homeOfContainer) {
		return Home{}, false
	}
	return abandoned(dir)
}

// abandoned locks and returns a home, unless another process has locked it. Every user can create files in the
// directory for temporary files, so abandoned accepts only a directory that no other user can write to.
func abandoned(dir string) (Home, bool) {
	about, err := os.Lstat(dir)
	if err != nil || !ours(about) {
		return Home{}, false
	}
	lock, err := lockDir(dir)
	return Home{dir, lock}, err == nil
}

// Leave releases the lock, so that a later sweep finds the home.
func (h Home) Leave() {
	if h.lock != nil {
		_ = h.lock.Close() // nothing was written
	}
}

// Remove removes the home with its contents.
func (h Home) Remove() error {
	defer h.Leave() // only afterwards, or a sweep would remove the home at the same time
	return os.RemoveAll(h.Dir)
}
