package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stat returns the fields of /proc/PID/stat from the third (the state) on, see proc_pid_stat(5); nil if
// the process does not exist or has ended.
func stat(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	// The command's name, field 2, is in brackets and may contain any characters.
	line := string(text)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const enough = 22 - 3
	if len(fields) <= enough || fields[0] == "Z" { // a zombie has ended
		return nil
	}
	return fields
}

// pids returns the IDs of all processes.
func pids() []int {
	entries, _ := os.ReadDir("/proc")
	var all []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// descendants returns the children of a process, their children and so on.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, child := range pids() {
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

// endAll kills processes that have lost their parent, and waits for their end: then what they hold,
// such as a port, is free.
func endAll(all []int) {
	for _, pid := range all {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill() // it may have ended already
		}
	}
	const patience = 5 * time.Second
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(all, alive) {
			return
		}
	}
}

// cpuOf returns the CPU time of a process and these descendants, including ended ones that were waited
// for, in seconds.
func cpuOf(pid int, descendants []int) *float64 {
	var seconds float64
	known := false
	for _, member := range append([]int{pid}, descendants...) {
		fields := stat(member)
		if fields == nil {
			continue
		}
		known = true
		// If many processes do little each, stat's ticks show nothing.
		seconds += max(ticks(fields[14-3:16-3]), running(member)) + ticks(fields[16-3:18-3])
	}
	if !known {
		return nil
	}
	return &seconds
}

// ticks sums times from stat, in seconds.
func ticks(fields []string) float64 {
	const perSecond = 100 // USER_HZ, the same on all architectures that Go knows
	var sum float64
	for _, field := range fields {
		n, _ := strconv.ParseFloat(field, 64) // a number, by the format
		sum += n
	}
	return sum / perSecond
}

// running returns the run time of a process's living threads in seconds, to the nanosecond; 0 if the
// kernel does not report it.
func running(pid int) float64 {
	threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat")) // the pattern is valid
	var sum float64
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // it may have ended
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseFloat(first, 64)
		sum += ns
	}
	return sum / 1e9
}
