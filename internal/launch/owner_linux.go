package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// startTime returns the start of a process in clock ticks since boot: field 22 of /proc/PID/stat,
// see proc_pid_stat(5). It returns "" if the process does not exist.
func startTime(pid int) string {
	fields := stat(pid)
	if fields == nil {
		return ""
	}
	return fields[22-3]
}

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}

func alive(pid int) bool { return startTime(pid) != "" }

// killServer kills the server of a dead owner with its children, and returns their pids. A process
// is that server only if it began at the noted time, on this boot, and runs a noted program. It is
// opened (pidfd) before it is checked, so that the signals reach no other process.
func (o owner) killServer() ([]int, error) {
	if o.Server == 0 || o.Boot != bootID() || o.Namespace != pidNamespace() {
		return nil, nil
	}
	process, err := os.FindProcess(o.Server)
	if err != nil {
		return nil, fmt.Errorf("find its server: %w", err)
	}
	defer func() { _ = process.Release() }()
	if since := startTime(o.Server); since == "" || since != o.Since || !Runs(o.Server, o.Programs...) {
		return nil, nil
	}
	if err := pause(process); err != nil { // else it could start further children
		return nil, fmt.Errorf("kill its server: %w", err)
	}
	killed := append([]int{o.Server}, descendants(o.Server)...)
	_ = process.Kill() // it may have ended meanwhile
	endAll(killed)
	return killed, nil
}

// Runs says whether a process of this machine is one of those programs, even if a loader other than
// the system's started it.
func Runs(pid int, programs ...string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	comm, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil {
		return false
	}
	name := strings.TrimSpace(string(comm))
	if strings.HasPrefix(name, "ld-") {
		command, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		return slices.ContainsFunc(programs, func(program string) bool { return strings.Contains(string(command), program) })
	}
	const longest = 15 // the kernel cuts names off at this length
	return slices.ContainsFunc(programs, func(program string) bool {
		return strings.HasPrefix(name, program[:min(len(program), longest)])
	})
}
