package launch

import (
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

// killIn kills the processes of those programs whose working directory is dir or below it. Only our
// servers run there, so this check identifies them. A pidfd holds the process during the
// check, so that its pid cannot be reused.
func killIn(dir string, programs []string) ([]int, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	var killed []int
	for _, pid := range pids() {
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if runsIn(dir, pid) && Runs(pid, programs...) && process.Kill() == nil {
			killed = append(killed, pid)
		}
		_ = process.Release()
	}
	endAll(killed)
	return killed, nil
}

func runsIn(dir string, pid int) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	return err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/"))
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
