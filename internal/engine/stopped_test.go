//go:build unix

package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const toBeStopped = "LOCKBENCH_TEST_TO_BE_STOPPED"

// TestHelperStopped is the body of the child process that runElsewhere starts. It executes a run and prints its phases
// and its results.
func TestHelperStopped(t *testing.T) {
	if os.Getenv(toBeStopped) == "" {
		t.Skip("it is for another test")
	}
	w := workload(func(w *workloads.Spec) { w.Duration = workloads.Duration(3 * time.Second) })
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	phase := func(name string) { fmt.Println("phase", name) }
	j := Job{Strategy: v, Workload: w, Session: "test", Number: 1, Round: 1, Order: 1, Phase: phase}
	run, err := j.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("run", string(encoded))
}

// runElsewhere executes a run in a child process and returns it. It calls during with that process as soon as the
// window is open.
func runElsewhere(t *testing.T, during func(*os.Process) error) results.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHelperStopped$")
	cmd.Env = append(os.Environ(), toBeStopped+"=1")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var run results.Run
	var disturbed error
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case what == "phase" && rest == "measure":
			disturbed = during(cmd.Process)
		case what == "run":
			err = json.Unmarshal([]byte(rest), &run)
		}
	}
	if ended := cmd.Wait(); disturbed != nil || err != nil || lines.Err() != nil || ended != nil {
		t.Fatal(disturbed, err, lines.Err(), ended)
	}
	return run
}

func TestStoppedGeneratorIsInvalid(t *testing.T) {
	t.Parallel()
	const pause = 2 * time.Second
	run := runElsewhere(t, func(p *os.Process) error {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(pause)
		return p.Signal(syscall.SIGCONT)
	})
	if still := run.Generator.StoodStill; still == nil {
		t.Error("it noted nothing")
	} else if time.Duration(*still) < pause*3/4 {
		t.Errorf("stopped for %v, and it noted %v", pause, time.Duration(*still))
	}
	if !strings.Contains(run.Invalid.String(), "did not run for") {
		t.Errorf("stopped for %v of 3 s: invalid %q", pause, run.Invalid)
	}
}
