package command_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// serversIn finds the redis-servers whose working directory is below dir. It returns the state of each process, such as
// T for stopped, and the address of one of the servers.
func serversIn(t *testing.T, dir string) (states []string, addr string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
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
			title, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
			if fields := strings.Fields(string(title)); len(fields) > 1 { // redis-server HOST:PORT
				addr = strings.Trim(fields[1], "\x00")
			}
		}
	}
	return states, addr
}

// locked returns the text calls=N, where N is the number of SET calls on the only server below a directory. It returns
// "" before the first SET.
func locked(t *testing.T, dir string) (sets string) {
	t.Helper()
	_, addr := serversIn(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "lockbench-server-*", "password.conf"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the passwords of the servers: %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	client := redistest.Dial(t, "redis://:"+strings.Fields(string(text))[1]+"@"+addr)
	stats, _ := client.Info(t.Context(), "commandstats").Result()
	_, sets, _ = strings.Cut(stats, "cmdstat_set:")
	sets, _, _ = strings.Cut(sets, ",")
	return sets
}

// The test ends lockbench during a fault. After Ctrl-C, no server may be left. After SIGKILL, no server may be left
// once lockbench clean has run.
func TestInterruptedFaultLeavesNoServer(t *testing.T) {
	const stopped, running = "T", "S" // process states: stopped by SIGSTOP, and sleeping until a request
	for _, test := range []struct {
		signal syscall.Signal
		fault  string
		state  string // process state of the server during the fault; "" means that it does not exist
	}{
		{syscall.SIGINT, "pause:at=50ms,for=40s", stopped},
		{syscall.SIGINT, "kill:at=50ms,for=40s", ""},
		{syscall.SIGINT, "partition:at=50ms,for=40s", running},
		{syscall.SIGKILL, "pause:at=50ms,for=40s", stopped},
		{syscall.SIGKILL, "partition:at=50ms,for=40s", running},
	} {
		t.Run(test.signal.String()+" "+test.fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := prepared(t, "lockbench", "--redis", "process", "-s", "spin", "-c", "4", "-d", "60s", "-w", "0s",
				"--no-baselines", "--fault", test.fault, "-o", "json="+filepath.Join(dir, "out.json"))
			p.cmd.Env = append(os.Environ(), "TMPDIR="+dir)
			p.run()
			p.await("[1/1]")
			if test.state == running { // the partition is active once no client gets a lock
				poll.Until(t, "clients begin", func() bool { return locked(t, dir) != "" })
				for before := ""; before != locked(t, dir); time.Sleep(time.Second) {
					before = locked(t, dir)
				}
			}
			poll.Until(t, "the server's state is "+test.state, func() bool {
				states, _ := serversIn(t, dir)
				return strings.ReplaceAll(strings.Join(states, ""), "R", running) == test.state
			})
			p.signal(test.signal)
			code := p.code()
			if test.signal == syscall.SIGKILL {
				clean := prepared(t, "lockbench", "clean")
				clean.cmd.Env = p.cmd.Env
				clean.run()
				if code := clean.code(); code != "0" {
					t.Errorf("clean ended with %s: %s", code, &clean.said)
				}
			} else if report := readReport(t, filepath.Join(dir, "out.json")); code != "105" || len(report.Runs) != 1 ||
				len(report.Runs[0].Faults[0].Injections) != 1 {
				t.Errorf("exit code %s, runs %+v", code, report.Runs)
			}
			poll.Until(t, "no server is left", func() bool { states, _ := serversIn(t, dir); return len(states) == 0 })
			if left, err := filepath.Glob(filepath.Join(dir, "lockbench-*")); err != nil || len(left) > 0 {
				t.Errorf("leftovers: %v %v", left, err)
			}
		})
	}
}
