package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
)

// The test kills one of three generators during a run. The other two must report which one died, end within seconds and
// leave no key behind.
func TestKilledGenerator(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "report.json")
	var processes []*process
	for _, index := range []string{"0", "1", "2"} {
		args := []string{
			"-s", "spin", "-u", redis.URL(), "-c", "3", "--hold", "50ms", "-d", "1m", "--no-baselines",
			"-o", "json=" + file,
		}
		processes = append(processes, start(t, "lockbench", append(args, "--generators", "3", "--generator", index)...))
	}
	killed := processes[2]
	underWay(t, redis)
	killed.signal(os.Kill)
	killed.code()
	for _, p := range processes[:2] {
		if code := p.code(); code != "112" || !strings.Contains(p.said.String(), "lockbench: generator 2 died") {
			t.Errorf("it ended with %s:\n%s", code, &p.said)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	report, err := results.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 1 || len(report.Generators) != 3 ||
		!strings.Contains(report.Runs[0].Invalid.String(), "generator 2 died") {
		t.Errorf("%d runs of %d generators: %+v", len(report.Runs), len(report.Generators), report.Runs)
	} else if n := report.Runs[0].Safety.LeftoverCount; n != nil {
		t.Errorf("of the strategy's leftovers nothing is known, and they are %d: %q", *n, report.Runs[0].Safety.Leftovers)
	}
	if left := redis.Client(t).Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A generator that starts late must take part. A generator with different flags must be rejected. If one generator is
// interrupted, all other generators must end.
func TestLateGenerator(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	generator := func(more ...string) *process {
		t.Helper()
		args := []string{
			"-s", "spin", "-u", redis.URL(), "-c", "3", "--think", "50ms", "-d", "60s", "--no-baselines",
			"--generators", "2",
		}
		return start(t, "lockbench", append(args, more...)...)
	}
	first := generator()
	first.await("generator 0 of 2 has joined")
	other := generator("--hold", "1ms")
	if code := other.code(); code != "104" ||
		!strings.Contains(other.said.String(), "lockbench: --generators: --hold is 1ms here, but 0s for the first") {
		t.Errorf("it ended with %s:\n%s", code, &other.said)
	}
	late := generator()
	late.await("generator 1 of 2 has joined")
	underWay(t, redis)
	late.signal(syscall.SIGINT)
	if code := late.code(); code != "105" || strings.Contains(late.said.String(), "sent its record") {
		t.Errorf("it ended with %s:\n%s", code, &late.said)
	}
	if code := first.code(); code != "112" || !strings.Contains(first.said.String(), "generator 1 was stopped") {
		t.Errorf("it ended with %s:\n%s", code, &first.said)
	}
}
