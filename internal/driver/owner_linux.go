package driver

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// onlyOurs returns nil if only root and this user could have created or changed a program. They must own the file and
// each directory above it, and no other user may write to any of these. onlyOurs follows symbolic links. Other users
// may write to a sticky directory such as /tmp, because they cannot rename this user's entries there.
func onlyOurs(file string) error {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return fmt.Errorf("find the driver %s: %w", file, err)
	}
	for path := real; ; path = filepath.Dir(path) {
		about, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read the owner of the driver %s: %w", file, err)
		}
		if why := changeable(about); why != "" {
			return fmt.Errorf("lockbench does not start the driver %s, because %s %s; "+
				"correct this with chown or chmod, or use %sPATH", file, path, why, Prefix)
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// changeable returns why another user could change a file or the entries of a directory; "" if none could.
func changeable(about fs.FileInfo) string {
	owner, known := about.Sys().(*syscall.Stat_t)
	switch {
	case !known:
		return "has no known owner"
	case owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", owner.Uid)
	case about.IsDir() && about.Mode()&fs.ModeSticky != 0:
		return ""
	case about.Mode().Perm()&0o002 != 0:
		return "can be written by every user"
	case about.Mode().Perm()&0o020 != 0 && owner.Gid != owner.Uid: // a group with the user's number has no other members
		return fmt.Sprintf("can be written by group %d", owner.Gid)
	}
	return ""
}
