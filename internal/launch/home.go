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
// home is abandoned. Unlike a recorded process ID, the lock works across PID namespaces, and no later process can be
// mistaken for the owner. Homes are locked on Linux only. On other systems no home counts as abandoned.

// These prefixes of directory names distinguish the homes of processes from those of containers.
const (
	homeOfProcess   = "lockbench-server-"
	homeOfContainer = "lockbench-container-"
)

// Home is a server's directory that this process has locked.
type Home struct {
	Dir  string
	lock io.Closer // nil on systems without these locks
}

// errLocked means that a live lockbench process has locked the home, so it must not be removed.
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

// HomeOfContainer creates a home that stays empty. The container has a label with the path of the home, which a later
// call to Abandoned needs.
func HomeOfContainer() (Home, error) { return newHome(homeOfContainer) }

// Abandoned returns the home of a container if the lockbench process that started the container has ended. The home is
// then locked. The caller must remove the container first, and then the home.
func Abandoned(dir string) (Home, bool) {
	if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), homeOfContainer) {
		return Home{}, false
	}
	return abandoned(dir)
}

// abandoned locks and returns a home. It returns false if another process has locked the home. Every user can create
// files in the directory for temporary files, so abandoned accepts only a directory that no other user can write to.
func abandoned(dir string) (Home, bool) {
	about, err := os.Lstat(dir)
	if err != nil || !ours(about) {
		return Home{}, false
	}
	lock, err := lockDir(dir)
	return Home{dir, lock}, err == nil
}

// Leave releases the lock and keeps the directory, so that a later sweep finds the home.
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
