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

// passed lists the environment variables that lockbench passes on to a driver in addition to LC_*. Programs and
// language runtimes need them. All others stay hidden from the driver, because they may be secrets, such as
// LOCKBENCH_REDIS_PASSWORD or a CI token. docs/DRIVERS.md has the same list.
var passed = strings.Fields("PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR LD_LIBRARY_PATH " +
	"SSL_CERT_FILE SSL_CERT_DIR JAVA_HOME JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS CLASSPATH " +
	"NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS PYTHONPATH PYTHONHOME PYENV_ROOT PYENV_VERSION VIRTUAL_ENV " +
	"RUBYLIB RUBYOPT GEM_HOME GEM_PATH DOTNET_ROOT GODEBUG GOMAXPROCS")

// markName is the environment variable that marks all processes that a driver has started. It identifies even those
// that changed their session or whose parents have ended. lockbench does not adopt such orphans
// (PR_SET_CHILD_SUBREAPER): it would have to wait for them and to tell them apart from its own children and from those
// of other drivers.
const markName = "DRIVER_OF_LOCKBENCH"

// newMark returns DRIVER_OF_LOCKBENCH=VALUE with a random VALUE. Each driver gets a different one.
func newMark() string { return markName + "=" + rand.Text() }

// environment returns the environment in which a driver starts: the variables in passed, all LC_* variables, and the
// driver's mark.
func environment(mark string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(passed, name) && !strings.HasPrefix(name, "LC_")
	}), mark)
}

// killMarked kills all processes whose environment contains mark. It repeats the search until it finds none or
// closePatience has passed, because a process may start others before it is killed. It does not find a process that has
// removed or overwritten its environment.
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
			process, err := os.FindProcess(pid) // a descriptor, so that no other process can get this ID from here on
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

// hasLine reports whether a file of NUL-terminated strings, such as /proc/PID/environ, contains text as one of them. It
// reports false if the file cannot be read.
func hasLine(file, text string) bool {
	all, err := os.ReadFile(file) // fails for processes of other users and for ended ones
	return err == nil && slices.Contains(strings.Split(string(all), "\x00"), text)
}
