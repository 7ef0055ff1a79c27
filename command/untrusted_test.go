package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// No command may start a program that its command line does not name, even in a directory with another person's
// drivers, claims, workloads and run files.
func TestNoFileStartsAProgram(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatal(err)
	}
	redis := redistest.Start(t)
	claim := func(line string) string {
		return "says: innocent\nruns:\n  a: " + line + " --clients 2 --duration 100ms --warmup 0s\n" +
			"expect:\n  - what: something\n    figure: \"a[spin].acq_per_s\"\n    is: \">= 1\"\n"
	}
	files := map[string]string{
		"exec.yaml":     claim("-s exec:./evil"),
		"long.yaml":     claim("--strategy spin,exec:./evil"),
		"equals.yaml":   claim("--strategy=spin+exec:./evil"),
		"name.yaml":     claim("-s evil"),
		"blank.yaml":    claim("-s 'spin, exec:evil'"),
		"run.yaml":      "strategies: [spin, 'exec:./evil']\nduration: 100ms\n",
		"runname.yaml":  "strategy: evil\nduration: 100ms\n",
		"process.yaml":  "redis: process:./evil\nduration: 100ms\n",
		"workload.yaml": "strategy: exec:./evil\nclients: 2\n",
	}
	usual := []string{"-d", "100ms", "-w", "0s", "--no-baselines", "-q", "-u", redis.URL()}
	run := func(words ...string) []string { return append(words, usual...) }
	var lines [][]string
	for _, file := range []string{"exec.yaml", "long.yaml", "equals.yaml", "name.yaml", "blank.yaml"} {
		lines = append(lines, []string{"claims", file, "-u", redis.URL()}, []string{"claims", file, "--list"})
	}
	lines = append(lines,
		run("-s", "spin"), run("-s", "evil"), run("-s", "redisson"), run("-f", "run.yaml"), run("-f", "runname.yaml"),
		[]string{"-f", "process.yaml", "-q"}, run("--workload", "workload.yaml"),
		[]string{"clean", "-u", redis.URL()}, []string{"drivers"}, []string{"list"}, []string{"list", "evil"},
		[]string{"check", "evil", "-q"}, []string{"advise", "--language", "python", "--budget", "1s", "-u", redis.URL()},
		[]string{"advise", "-s", "evil,spin", "--budget", "1s", "-u", redis.URL()}, []string{"doctor", "-u", redis.URL()},
		[]string{"version"}, []string{"compare", "run.yaml", "exec.yaml"}, []string{"report", "run.yaml", "-o", "x.html"},
		[]string{"selfcheck", "--only", "none"}, []string{"__complete", "-s", ""}, []string{"help"},
		[]string{"ab", "lockbench", "lockbench", "--pairs", "1", "-u", redis.URL(), "--", "-f", "run.yaml"},
		[]string{"record", "sessions", "-n", "1", "--", "-f", "run.yaml", "-u", redis.URL()},
		// These lines name the program, but a dry run must not start it.
		[]string{"-s", "exec:./evil", "--dry-run"}, []string{"advise", "-s", "exec:./evil", "--dry-run"},
	)
	for _, line := range lines {
		for _, dry := range [][]string{nil, {"--dry-run"}} {
			words := append(slices.Clip(line), dry...)
			if line[len(line)-1] == "--dry-run" && dry != nil {
				continue
			}
			t.Run(strings.ReplaceAll(strings.Join(words, " "), redis.URL(), "URL"), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				started := filepath.Join(dir, "started")
				evil := "#!/bin/sh\necho \"$0\" >>" + started + "\n"
				for _, name := range []string{
					"evil", "drivers/evil", "drivers/redisson", "drivers/spin", "drivers/redis-py/driver", "redis-server",
				} {
					place(t, filepath.Join(dir, name), evil, 0o755)
				}
				for name, text := range files {
					place(t, filepath.Join(dir, name), text, 0o644)
				}
				p := exec.Command("lockbench", words...)
				p.Dir = dir
				output, _ := p.CombinedOutput() // other tests check the exit code
				if who, err := os.ReadFile(started); err == nil {
					t.Errorf("it started %s and said:\n%s", who, output)
				}
			})
		}
	}
}

func place(t *testing.T, file, text string, rights os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), rights); err != nil {
		t.Fatal(err)
	}
}
