//go:build linux

package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bind makes the kernel kill the child when the thread that starts the child ends, even if SIGKILL ends this process.
func bind(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// lockDir locks a directory until the returned Closer is closed or this process ends. It does not follow a symbolic
// link. Programs that this process starts do not inherit the lock, because a child may outlive it.
func lockDir(dir string) (io.Closer, error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err == nil {
		_, err = os.Lstat(dir) // the previous owner of the lock may have removed it since it was opened here
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, errors.Join(err, file.Close()))
	}
	return file, nil
}

// stat returns the fields of /proc/PID/stat from the third field (the state) on, as documented in proc_pid_stat(5). It
// returns nil if the process does not exist or has ended.
func stat(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	// Field 2, the name of the command, is in parentheses and may contain any characters.
	line := string(text)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const enough = 22 - 3
	if len(fields) <= enough || fields[0] == "Z" { // a zombie has ended
		return nil
	}
	return fields
}

// descendants returns the children of a process, their children and so on.
func descendants(pid int) []int {
	if childless(pid) {
		return nil
	}
	children := map[int][]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if fields := stat(child); fields != nil {
			parent, _ := strconv.Atoi(fields[1]) // a number, by the format
			children[parent] = append(children[parent], child)
		}
	}
	all := slices.Clone(children[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// childless reports whether a process certainly has no children, as is usual for Redis. A true result saves a search
// through all processes of the machine, which may be thousands. On a kernel that does not list the children of a
// thread, childless returns false.
func childless(pid int) bool {
	for range 2 { // a thread that ends passes its children to another thread, whose list may already have been read
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
		for _, list := range lists {
			if children, err := os.ReadFile(list); err != nil || len(children) > 0 {
				return false
			}
		}
		if len(lists) == 0 {
			return false
		}
	}
	return true
}

// endAll kills processes in the given order. It waits up to 5 s for them to exit, so that their resources, such as
// ports, are free afterwards.
func endAll(all []int) {
	for _, pid := range all {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill() // it may have ended already
		}
	}
	const patience = 5 * time.Second
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(all, func(pid int) bool { return stat(pid) != nil }) {
			return
		}
	}
}

// cpuOf returns the CPU time in seconds of a process and its descendants, including those that have ended and were
// waited for. It returns nil if none of these processes exists.
func cpuOf(pid int) *float64 {
	var seconds float64
	known := false
	for _, member := range append([]int{pid}, descendants(pid)...) {
		fields := stat(member)
		if fields == nil {
			continue
		}
		known = true
		// A process that has used less than a tick counts as 0 in stat. With many such processes, the error would be large.
		seconds += max(ticks(fields[14-3:16-3]), running(member)) + ticks(fields[16-3:18-3])
	}
	if !known {
		return nil
	}
	return &seconds
}

// ticks converts fields of /proc/PID/stat from clock ticks to seconds and returns their sum.
func ticks(fields []string) float64 {
	const perSecond = 100 // USER_HZ, the same on all architectures that Go knows
	var sum float64
	for _, field := range fields {
		n, _ := strconv.ParseFloat(field, 64) // a number, by the format
		sum += n
	}
	return sum / perSecond
}

// running returns the run time of a process's live threads in seconds, with a resolution of a nanosecond, or 0 if the
// kernel does not report run times.
func running(pid int) float64 {
	threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	var sum float64
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // it may have ended
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseFloat(first, 64)
		sum += ns
	}
	return sum / 1e9
}

// Runs reports whether the process with this ID on this machine runs one of these programs.
func Runs(pid int, programs ...string) bool {
	comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return false
	}
	const longest = 15 // the kernel truncates names to this length
	return slices.ContainsFunc(programs, func(program string) bool {
		return strings.HasPrefix(string(comm), program[:min(len(program), longest)])
	})
}

// keep binds a socket to a port without listening on it. Servers use SO_REUSEADDR, so they can still listen there. The
// kernel does not use the port for outgoing connections, and a socket without SO_REUSEADDR cannot bind to it (ip(7);
// inet_csk_bind_conflict).
func keep(port int) (io.Closer, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		err = unix.Bind(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		_ = unix.Close(socket)
		return nil, err
	}
	return os.NewFile(uintptr(socket), "port "+strconv.Itoa(port)), nil
}

// exclusive turns SO_REUSEADDR off, so that a port held by keep counts as in use.
func exclusive(_, _ string, conn syscall.RawConn) error {
	var err error
	if problem := conn.Control(func(socket uintptr) {
		err = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}); problem != nil {
		return problem
	}
	return err
}
