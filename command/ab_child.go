package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// child is one run of one build, in a process of its own.
type child struct {
	program string
	flags   []string
	redis   lockbench.StoreOptions
	seed    int
	report  string // the file it writes
	alone   bool   // of the LOCKBENCH_ variables, use only those that say where Redis is
}

// patience is how long a run may take to end after an interrupt.
const patience = 30 * time.Second

// run runs the child to its end, and interrupts it when ctx ends. It returns a report
// also if the run broke a guarantee or its figures cannot be trusted.
func (c child) run(ctx context.Context) (*results.Report, error) {
	cmd := exec.CommandContext(ctx, c.program, slices.Concat([]string{"run"}, c.flags, []string{"--quiet", "--output", "json=" + c.report})...)
	cmd.Env = c.environment()
	var said bytes.Buffer
	cmd.Stderr = &said
	apart(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	err := cmd.Run()
	code := ExitOK
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		code = ended.ExitCode()
	} else if err != nil {
		return nil, &exit{ExitFailure, fmt.Errorf("start %s: %w", c.program, err)}
	}
	switch code {
	case ExitOK, ExitThreshold, ExitSafety, ExitInvalid:
		report, err := readReport(c.report)
		if err != nil {
			return nil, &exit{ExitFailure, err}
		}
		return report, nil
	case ExitConfig, ExitUnreachable:
	default:
		code = ExitFailure
	}
	return nil, &exit{code, fmt.Errorf("%s ended with %w%s", c.program, err, lastWords(said.String()))}
}

// environment returns our environment with the place of Redis, and with ab's defaults
// where the user sets nothing else. A password belongs here: ps does not show it.
func (c child) environment() []string {
	if c.alone {
		others := slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "LOCKBENCH_") })
		return append(others, "LOCKBENCH_REDIS="+c.redis.Address, "LOCKBENCH_CA_FILE="+c.redis.CAFile, "LOCKBENCH_TOPOLOGY="+c.redis.Topology)
	}
	ours := map[string]string{
		"LOCKBENCH_REDIS": c.redis.Address, "LOCKBENCH_CA_FILE": c.redis.CAFile, "LOCKBENCH_TOPOLOGY": c.redis.Topology,
		"LOCKBENCH_OUTPUT": "", "LOCKBENCH_DRY_RUN": "", "LOCKBENCH_IMAGE": "", "LOCKBENCH_PIN": "",
	}
	defaults := map[string]string{"LOCKBENCH_NO_BASELINES": "true", "LOCKBENCH_SEED": strconv.Itoa(c.seed)}
	if os.Getenv("LOCKBENCH_WORKLOAD") == "" && !given(c.flags, "workload") { // a workload file goes before these defaults
		defaults["LOCKBENCH_DURATION"], defaults["LOCKBENCH_WARMUP"] = "2s", "500ms"
	}
	for name, usual := range defaults {
		if os.Getenv(name) == "" {
			ours[name] = usual
		}
	}
	environment := os.Environ()
	for name, value := range ours {
		environment = append(environment, name+"="+value) // the last one counts
	}
	return environment
}

// given says whether a flag is among the arguments.
func given(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=")
	})
}

// lastWords returns the last lines of a process's output.
func lastWords(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	const most = 10
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	if lines[0] == "" {
		return ""
	}
	return ":\n" + strings.Join(lines, "\n")
}
