package servers

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// startTime is when a process started, in clock ticks since boot: field 22 of
// /proc/PID/stat, see proc_pid_stat(5). It is "" for a process that is gone.
func startTime(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The command's name, field 2, is in brackets and may hold anything.
	line := string(stat)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const afterName = 22 - 3
	if len(fields) <= afterName || fields[0] == "Z" { // a zombie has ended
		return ""
	}
	return fields[afterName]
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

// killServersIn ends the redis-server processes whose working directory is dir.
// Ours run there, nobody else's do: that is how a pid is known to be the server
// it is taken for. The process is held (by a pidfd) while it is looked at, so
// that the pid cannot come to mean another.
func killServersIn(dir string) ([]int, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var killed []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if isServerIn(dir, pid) && process.Kill() == nil {
			killed = append(killed, pid)
		}
		_ = process.Release()
	}
	return killed, nil
}

func isServerIn(dir string, pid int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil || cwd != dir {
		return false
	}
	return isServerProcess(pid)
}

// known are the programs that may be the server of a run.
var known = []string{"redis-server", "valkey-server", "keydb-server", "dragonfly"}

// isServerProcess says whether a process is one of them, be it started by a loader that
// is not the system's.
func isServerProcess(pid int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	comm, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil {
		return false
	}
	if strings.HasPrefix(string(comm), "ld-") {
		comm, _ = os.ReadFile(filepath.Join(proc, "cmdline"))
		return slices.ContainsFunc(known, func(name string) bool { return strings.Contains(string(comm), name) })
	}
	return slices.ContainsFunc(known, func(name string) bool { return strings.HasPrefix(string(comm), name) })
}
