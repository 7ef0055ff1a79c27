package driver

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// onlyOurs returns nil if only root and this user can have put a program there, and can change it: they own the file
// and each directory above it, and others may write to none. Links are followed. Others may write to a sticky directory
// such as /tmp, in which they can rename nothing of ours.
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
			return fmt.Errorf("the driver %s is not started, because %s %s: chown and chmod it, or name its path after %s",
				file, path, why, Prefix)
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
	case about.Mode().Perm()&0o020 != 0 && owner.Gid != owner.Uid: // else it is the user's own group, of which no other is
		return fmt.Sprintf("can be written by group %d", owner.Gid)
	}
	return ""
}
