package driver

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// passed are the variables that a driver gets of lockbench's environment: what programs and their languages need to
// run. Others may be secrets, such as LOCKBENCH_REDIS_PASSWORD or a token of CI. docs/DRIVERS.md has the list.
var passed = strings.Fields("PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR LD_LIBRARY_PATH " +
	"SSL_CERT_FILE SSL_CERT_DIR JAVA_HOME JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS CLASSPATH " +
	"NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS PYTHONPATH PYTHONHOME PYENV_ROOT PYENV_VERSION VIRTUAL_ENV " +
	"RUBYLIB RUBYOPT GEM_HOME GEM_PATH DOTNET_ROOT GODEBUG GOMAXPROCS")

// markName is the variable by which the processes that a driver has started are found, also in a session of their own
// and after the end of their parents. lockbench does not become the parent of such orphans (PR_SET_CHILD_SUBREAPER):
// it would have to distinguish them from its own children and from those of other drivers, and wait for them.
const markName = "DRIVER_OF_LOCKBENCH"

// newMark returns a variable that no other driver has.
func newMark() string { return markName + "=" + rand.Text() }

// environment returns a driver's, with its mark.
func environment(mark string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(passed, name) && !strings.HasPrefix(name, "LC_")
	}), mark)
}

// killMarked kills the processes with a mark in their environment until there is none, or one does not end in time. It
// does not find one that has removed or overwritten its environment.
func killMarked(mark string) {
	for end := time.Now().Add(closePatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		found := false
		all, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range all {
			if !hasLine(file, mark) {
				continue
			}
			found = true
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			process, err := os.FindProcess(pid) // by a descriptor: its ID cannot become another's from here on
			if err == nil && hasLine(file, mark) {
				_ = process.Kill()
			}
			_ = process.Release()
		}
		if !found {
			return
		}
	}
}

// hasLine reports whether one of a file's texts, which end with a zero, is this one.
func hasLine(file, text string) bool {
	all, err := os.ReadFile(file) // the system refuses those of other users, and a dead process has none
	return err == nil && slices.Contains(strings.Split(string(all), "\x00"), text)
}
