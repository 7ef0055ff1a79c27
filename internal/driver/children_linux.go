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

// passed are the variables of lockbench's environment that a driver gets, because programs and language runtimes need
// them. Other variables may be secrets, such as LOCKBENCH_REDIS_PASSWORD or a CI token. docs/DRIVERS.md has the list.
var passed = strings.Fields("PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR LD_LIBRARY_PATH " +
	"SSL_CERT_FILE SSL_CERT_DIR JAVA_HOME JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS CLASSPATH " +
	"NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS PYTHONPATH PYTHONHOME PYENV_ROOT PYENV_VERSION VIRTUAL_ENV " +
	"RUBYLIB RUBYOPT GEM_HOME GEM_PATH DOTNET_ROOT GODEBUG GOMAXPROCS")

// markName is the variable that identifies the processes that a driver has started, even if they changed their session
// or their parents have ended. lockbench does not adopt such orphans (PR_SET_CHILD_SUBREAPER), because it would have to
// distinguish them from its own children and from those of other drivers, and wait for them.
const markName = "DRIVER_OF_LOCKBENCH"

// newMark returns the variable, with a random value that no other driver has.
func newMark() string { return markName + "=" + rand.Text() }

// environment returns the environment of a driver, including its mark.
func environment(mark string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(passed, name) && !strings.HasPrefix(name, "LC_")
	}), mark)
}

// killMarked kills the processes with a mark in their environment, again and again until there is none or closePatience
// has passed. It does not find a process that has removed or overwritten its environment.
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

// hasLine reports whether a file of zero-terminated texts, such as /proc/PID/environ, contains text.
func hasLine(file, text string) bool {
	all, err := os.ReadFile(file) // fails for processes of other users and for ended ones
	return err == nil && slices.Contains(strings.Split(string(all), "\x00"), text)
}
