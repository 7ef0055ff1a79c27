//go:build unix

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// detach puts the child into a separate process group, so that Ctrl-C in the terminal does not end the server before
// lockbench has finished with it. If lockbench runs as root, the child runs as the named user.
func detach(cmd *exec.Cmd, as string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	who, err := lookUp(as)
	if err != nil || who == nil {
		return err
	}
	cmd.SysProcAttr.Credential = who
	return nil
}

// lookUp returns the credentials of the named user, or nil if lockbench does not run as root or the name is empty.
func lookUp(name string) (*syscall.Credential, error) {
	if name == "" || os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // no user, and no error
	}
	account, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("run as %s: %w", name, err)
	}
	uid, wrongUser := strconv.ParseUint(account.Uid, 10, 32)
	gid, wrongGroup := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(wrongUser, wrongGroup); err != nil {
		return nil, fmt.Errorf("run as %s: %w", name, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// handOver makes the user the owner of a file or an empty directory.
func handOver(file, name string) error {
	who, err := lookUp(name)
	if err != nil || who == nil {
		return err
	}
	return os.Lchown(file, int(who.Uid), int(who.Gid))
}

// ours reports whether a file belongs to this user and no other user can write to it.
func ours(about fs.FileInfo) bool {
	stat, ok := about.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid()) && about.Mode().Perm()&0o022 == 0
}

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
