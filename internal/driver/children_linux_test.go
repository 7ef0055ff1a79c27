package driver

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// with returns the IDs of the processes that have argument as one of their command-line arguments.
func with(argument string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if text, _ := os.ReadFile(file); slices.Contains(strings.Split(string(text), "\x00"), argument) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// When a driver fails, lockbench kills all its descendants, including those in another session and those whose parent
// has ended.
func TestDriverDescendantsAreKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ starts, argument string }{
		"a child":                   {"sleep 1000.0625 &", "1000.0625"},
		"in a session of its own":   {"setsid sleep 1000.125 &", "1000.125"},
		"an orphan, in another one": {"setsid sh -c 'setsid sleep 1000.25 & exit' &", "1000.25"},
		"one that starts others":    {"setsid sh -c 'for i in $(seq 50); do sleep 1000.5 & sleep 0.01; done' &", "1000.5"},
		"one that ignores SIGHUP":   {"setsid nohup sleep 1000.75 </dev/null >/dev/null 2>&1 &", "1000.75"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "go")
			words := []string{"sh", "-c", test.starts + " until [ -e " + file + " ]; do sleep 0.01; done; echo garbage; wait"}
			ended := make(chan error)
			go func() {
				_, err := Greet(t.Context(), words)
				ended <- err
			}()
			poll.Until(t, "the child runs", func() bool { return len(with(test.argument)) > 0 })
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "garbage") {
				t.Fatalf("it is greeted: %v", err)
			}
			if left := with(test.argument); len(left) > 0 {
				t.Errorf("the processes %v are left", left)
			}
		})
	}
}

// If lockbench is killed with SIGKILL, its driver must be killed too.
func TestDriverEndsWithLockbench(t *testing.T) {
	t.Parallel()
	lockbench := exec.Command(os.Args[0])
	lockbench.Env = append(os.Environ(), faulty+"=waits for ever")
	if err := lockbench.Start(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the driver runs", func() bool { return len(with("1000.875")) > 0 })
	if err := lockbench.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = lockbench.Wait() // killed
	poll.Until(t, "the driver has ended", func() bool { return len(with("1000.875")) == 0 })
}

// A driver inherits only the documented variables of lockbench's environment, since others may be secrets.
func TestDriverEnvironmentIsLimited(t *testing.T) {
	wanted := []string{"LC_TIME", "JAVA_HOME", "NODE_PATH", "TZ"}
	for _, name := range append([]string{
		"LOCKBENCH_REDIS", "LOCKBENCH_REDIS_PASSWORD", "REDISCLI_AUTH", "NODE_AUTH_TOKEN", "GITHUB_TOKEN", "PGPASSWORD",
		"AWS_SECRET_ACCESS_KEY", "https_proxy",
	}, wanted...) {
		t.Setenv(name, "value")
	}
	file := filepath.Join(t.TempDir(), "environment")
	if _, err := Greet(t.Context(), []string{"sh", "-c", "cat /proc/$$/environ >" + file}); err == nil {
		t.Fatal("it is greeted")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/DRIVERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "and all variables `LC_*`:\n")
	list, _, _ = strings.Cut(list, "lockbench passes no other")
	if documented := strings.Fields(list); !slices.Equal(documented, passed) {
		t.Errorf("docs/DRIVERS.md names %v", documented)
	}
	var got []string
	for variable := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		if got = append(got, name); value == "value" && !slices.Contains(wanted, name) {
			t.Errorf("it gets %s", name)
		}
	}
	for _, name := range append(wanted, "PATH", markName) {
		if !slices.Contains(got, name) {
			t.Errorf("it gets no %s, but %v", name, got)
		}
	}
}
