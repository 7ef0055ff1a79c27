package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stat are the fields of /proc/PID/stat from the third on, the state, see
// proc_pid_stat(5); nil for a process that is gone or has ended.
func stat(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	// The command's name, field 2, is in brackets and may hold anything.
	line := string(text)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const enough = 22 - 3
	if len(fields) <= enough || fields[0] == "Z" { // a zombie has ended
		return nil
	}
	return fields
}

// pids are those of all processes there are.
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

// descendants are the children of a process, their children and so on.
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

// endAll kills processes that have lost their parent, and waits until they are gone: what
// they hold, such as a port, is free then.
func endAll(all []int) {
	for _, pid := range all {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill() // it may have ended by itself
		}
	}
	const patience = 5 * time.Second
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(all, alive) {
			return
		}
	}
}

// cpuOf sums user and system time of a process and its descendants, and of those that
// have ended and were waited for, fields 14 to 17, in seconds.
func cpuOf(pid int) *float64 {
	const ticksPerSecond = 100 // USER_HZ, the same on all architectures that Go knows
	var ticks float64
	for _, member := range append([]int{pid}, descendants(pid)...) {
		fields := stat(member)
		if fields == nil {
			continue
		}
		for _, field := range fields[14-3 : 17-2] {
			n, _ := strconv.ParseFloat(field, 64) // a number, by the format
			ticks += n
		}
	}
	if ticks == 0 && !alive(pid) {
		return nil
	}
	seconds := ticks / ticksPerSecond
	return &seconds
}
