package command_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serversIn are the states of the redis-servers that run below a directory.
func serversIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, entry := range entries {
		proc := filepath.Join("/proc", entry.Name())
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if err != nil || !strings.HasPrefix(cwd, dir) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(proc, "stat"))
		if _, state, found := strings.Cut(string(stat), "(redis-server) "); found {
			states = append(states, state[:1])
		}
	}
	return states
}

// Whatever goes wrong on purpose, and however lockbench ends meanwhile, nothing of it
// stays: at once after a Ctrl-C, with the next lockbench after a SIGKILL.
func TestNothingOutlivesAFault(t *testing.T) {
	const stopped = "T" // by SIGSTOP
	for _, test := range []struct {
		signal syscall.Signal
		fault  string
		state  string // of the server meanwhile; "" is gone
	}{
		{syscall.SIGINT, "pause:at=50ms,for=40s", stopped},
		{syscall.SIGINT, "kill:at=50ms,for=40s", ""},
		{syscall.SIGINT, "partition:at=50ms,for=40s", "S"},
		{syscall.SIGKILL, "pause:at=50ms,for=40s", stopped},
		{syscall.SIGKILL, "partition:at=50ms,for=40s", "S"},
	} {
		t.Run(test.signal.String()+" "+test.fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := prepared(t, "lockbench", "--redis", "process", "-s", "spin", "-c", "4", "-d", "60s", "-w", "0s", "--no-floors", "--fault", test.fault, "-o", "json="+filepath.Join(dir, "out.json"))
			p.cmd.Env = append(os.Environ(), "TMPDIR="+dir)
			p.run()
			p.await("[1/1]")
			time.Sleep(1500 * time.Millisecond) // into the fault
			states := serversIn(t, dir)
			if got := strings.Join(states, ""); got != test.state && (test.state != "S" || got != "R") {
				t.Errorf("the server's state is %q, want %q", got, test.state)
			}
			p.signal(test.signal)
			code := p.code()
			if test.signal == syscall.SIGKILL {
				clean := prepared(t, "lockbench", "clean")
				clean.cmd.Env = p.cmd.Env
				clean.run()
				if code := clean.code(); code != "0" {
					t.Errorf("clean ended with %s: %s", code, &clean.said)
				}
			} else if report := readReport(t, filepath.Join(dir, "out.json")); code != "105" || len(report.Runs) != 1 || len(report.Runs[0].Faults[0].Strikes) != 1 {
				t.Errorf("exit code %s, runs %+v", code, report.Runs)
			}
			if states := serversIn(t, dir); len(states) > 0 {
				t.Errorf("servers are left: %v", states)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "lockbench-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}
